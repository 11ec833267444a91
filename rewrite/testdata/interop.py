"""Reads merged files with pyarrow and DuckDB and compares what both find with the
rows that are expected: in full, and by predicates, which use statistics, page
indexes and bloom filters. Each line of the input is a case; each answer is a line,
empty if all is well."""

import decimal
import json
import math
import struct
import sys
import traceback

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

decimal.getcontext().prec = 60
duck = duckdb.connect()
duck.execute("SET threads = 1")
duck.execute("SET enable_progress_bar = false")
duck.execute("SET TimeZone = 'UTC'")


def canon(a, t):
    """The values of an Arrow array as the model has them."""
    if isinstance(a, pa.ExtensionArray):
        a = a.storage
    kind, valid = t["kind"], a.is_valid().to_pylist()
    if kind == "struct":
        fields = [canon(a.field(i), f["type"]) for i, f in enumerate(t["fields"])]
        out = [[f[i] for f in fields] for i in range(len(a))]
    elif kind in ("list", "map"):
        offsets = a.offsets.to_pylist()
        if kind == "list":
            values = canon(a.values, t["element"])
        else:
            values = [list(p) for p in zip(canon(a.keys, t["key"]), canon(a.items, t["value"]))]
        out = [values[offsets[i]:offsets[i + 1]] for i in range(len(a))]
    elif kind == "int":
        if pa.types.is_date(a.type):
            a = a.cast(pa.int32())
        out = a.cast(pa.int64()).to_pylist()
    elif kind in ("float", "double"):
        form = {"float": ("<f", "<I"), "double": ("<d", "<Q")}[kind]
        out = [None if v is None else "NaN" if math.isnan(v) else struct.unpack(form[1], struct.pack(form[0], v))[0] for v in a.to_pylist()]
    elif kind == "decimal":
        out = [None if v is None else int(v.scaleb(t["scale"])) for v in a.to_pylist()]
    elif kind == "bytes":
        out = [None if v is None else v.hex() for v in a.to_pylist()]
    elif kind == "uuid":
        out = [None if v is None else v.replace("-", "") if isinstance(v, str) else v.hex() for v in a.to_pylist()]
    else:
        out = a.to_pylist()
    return [v if ok else None for v, ok in zip(out, valid)]


def column(table, name, t):
    a = table[name].combine_chunks()
    if isinstance(a, pa.ChunkedArray):
        a = pa.concat_arrays(a.chunks) if a.num_chunks else pa.array([], a.type)
    return canon(a, t)


def same(got, want, what):
    if got != want:
        at = next((i for i, (g, w) in enumerate(zip(got, want)) if g != w), min(len(got), len(want)))
        raise AssertionError(f"{what}: {len(got)} rows of {len(want)}, at {at}: {got[at:at+1]} is not {want[at:at+1]}")


def literal(v, t):
    """A value in SQL."""
    kind, of = t["kind"], t.get("of")
    if kind == "int":
        return {"date": "(DATE '1970-01-01' + {})", "timestamp": "make_timestamp({}::BIGINT)",
                "timestamptz": "make_timestamptz({}::BIGINT)"}.get(of, "{}::BIGINT").format(v)
    if kind in ("float", "double"):
        text = "nan" if v == "NaN" else repr(struct.unpack(*(("<f", struct.pack("<I", v)) if kind == "float" else ("<d", struct.pack("<Q", v))))[0])
        return f"'{text}'::{kind}"
    if kind == "decimal":
        return f"'{decimal.Decimal(v).scaleb(-t['scale'])}'::DECIMAL({t['precision']},{t['scale']})"
    if kind == "bytes":
        return "'" + "".join(f"\\x{v[i:i+2]}" for i in range(0, len(v), 2)) + "'::BLOB"
    if kind == "uuid":
        return f"'{v}'::UUID"
    if kind == "bool":
        return str(v).lower()
    return "'" + v.replace("'", "''") + "'"


def picks(values):
    """Some values of a column, from its ends and between."""
    some = [v for v in values if v is not None]
    return {json.dumps(some[i]): some[i] for i in (0, len(some) // 2)} if some else {}


def by_duckdb(path, want, fields):
    rel = f"read_parquet('{path}', file_row_number = true)"
    duck.execute(f"CREATE OR REPLACE TABLE whole AS SELECT * FROM {rel}")
    table = duck.execute("SELECT * FROM whole ORDER BY file_row_number").to_arrow_table()
    for i, f in enumerate(fields):
        same(column(table, f["name"], f["type"]), [r[i] for r in want], f"DuckDB, {f['name']}")

    def rows(source, predicate):
        return [r[0] for r in duck.execute(f"SELECT file_row_number FROM {source} WHERE {predicate} ORDER BY 1").fetchall()]

    asked = 0
    for i, f in enumerate(fields):
        t, name = f["type"], f["name"]
        if t["kind"] in ("struct", "list", "map") or t.get("of") == "time":
            continue
        values = [r[i] for r in want]
        same(rows(rel, f"{name} IS NULL"), [n for n, v in enumerate(values) if v is None], f"DuckDB, {name} is null")
        # To DuckDB NaN is the greatest number; statistics leave it out, as the format
        # says, so that it finds some of them only in files without.
        floats = t["kind"] in ("float", "double")
        for v in picks([v for v in values if v != "NaN"] if floats else values).values():
            for op in ("=", "<") if floats else ("=", "<", ">=", "<>"):
                p = f"{name} {op} {literal(v, t)}"
                same(rows(rel, p), rows("whole", p), "DuckDB, " + p)
                asked += 1
            found = rows(rel, f"{name} = {literal(v, t)}")
            if not floats:  # zeros are equal
                same(found, [n for n, w in enumerate(values) if w == v], f"DuckDB, {name} = {v}")
        if floats:
            continue
        aggregate = f"SELECT min({name})::VARCHAR, max({name})::VARCHAR, count({name}), count(*) FROM "
        a, b = duck.execute(aggregate + rel).fetchall(), duck.execute(aggregate + "whole").fetchall()
        if repr(a) != repr(b):
            raise AssertionError(f"DuckDB, {aggregate}: {a} is not {b}")
    return asked


def by_pyarrow(path, want, fields):
    whole = pq.read_table(path, page_checksum_verification=True)
    if whole.column_names != [f["name"] for f in fields]:
        raise AssertionError(f"pyarrow, columns {whole.column_names}")
    for i, f in enumerate(fields):
        same(column(whole, f["name"], f["type"]), [r[i] for r in want], f"pyarrow, {f['name']}")
    asked = 0
    for i, f in enumerate(fields):
        t, name = f["type"], f["name"]
        if t["kind"] not in ("int", "float", "double", "text", "bool"):
            continue
        x = pc.field(name)
        tests = [("is null", x.is_null())]
        for n in {0, whole.num_rows // 2} if whole.num_rows else ():
            if (s := whole[name][n]).is_valid:
                tests += [(f"= that of row {n}", x == s), (f"< that of row {n}", x < s), (f">= that of row {n}", x >= s)]
        for what, expression in tests:
            got, all = pq.read_table(path, filters=expression), whole.filter(expression)
            same(column(got, name, t), column(all, name, t), f"pyarrow, {name} {what}")
            asked += 1
    return asked


for line in sys.stdin:
    answer = {"error": "", "asked": 0}
    try:
        case = json.loads(line)
        at = 0
        for f in case["files"]:
            want = case["rows"][at:at + f["rows"]]
            at += f["rows"]
            answer["asked"] += by_pyarrow(f["path"], want, case["fields"]) + by_duckdb(f["path"], want, case["fields"])
        if at != len(case["rows"]):
            raise AssertionError(f"{at} rows of {len(case['rows'])}")
    except Exception:
        answer["error"] = traceback.format_exc()
    print(json.dumps(answer), flush=True)
