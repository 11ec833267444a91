"""Reads an Iceberg table by its metadata's location and prints its rows as JSON,
one a line, in the form of model.Portable. Arguments: reader, location, endpoint.
"""
import json
import re
import struct
import sys

import pyarrow as pa

UUID = re.compile(r"^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$")


def portable(a):
    if isinstance(a, pa.ChunkedArray):
        return [v for c in a.chunks for v in portable(c)]
    if isinstance(a, pa.ExtensionArray):
        return portable(a.storage)
    t = a.type
    if pa.types.is_struct(t):
        fields = [portable(a.field(i)) for i in range(t.num_fields)]
        names = [t.field(i).name for i in range(t.num_fields)]
        return [dict(zip(names, row)) if ok else None for ok, row in zip(a.is_valid().to_pylist(), zip(*fields))]
    if pa.types.is_map(t):
        return nested(a, [list(p) for p in zip(portable(a.keys), portable(a.items))])
    if pa.types.is_list(t) or pa.types.is_large_list(t):
        return nested(a, portable(a.values))
    if pa.types.is_date32(t):
        return tagged("d", a.cast(pa.int32()))
    if pa.types.is_time64(t):
        return tagged(t.unit, a.cast(pa.int64()))
    if pa.types.is_timestamp(t):
        return tagged(t.unit, a.cast(pa.int64()))
    return [scalar(t, v) for v in a.to_pylist()]


def nested(a, values):
    offsets = a.offsets.to_pylist()
    return [values[offsets[i] : offsets[i + 1]] if ok else None for i, ok in enumerate(a.is_valid().to_pylist())]


def tagged(unit, a):
    return [None if v is None else f"{unit}{v}" for v in a.to_pylist()]


def scalar(t, v):
    if v is None or pa.types.is_boolean(t) or pa.types.is_integer(t):
        return v
    if pa.types.is_float32(t):
        return "NaN" if v != v else "f" + struct.pack(">f", v).hex()
    if pa.types.is_float64(t):
        return "NaN" if v != v else "f" + struct.pack(">d", v).hex()
    if pa.types.is_decimal(t):
        sign, digits, exponent = v.as_tuple()
        n = int("".join(map(str, digits))) * 10 ** (t.scale + exponent)
        return f"{-n if sign else n}e-{t.scale}"
    if isinstance(v, bytes):
        return "x" + v.hex()
    if isinstance(v, str):
        return "x" + v.replace("-", "") if UUID.match(v) else v
    raise TypeError(f"{t}: {v!r}")


def pyiceberg(location, endpoint):
    from pyiceberg.table import StaticTable

    table = StaticTable.from_metadata(location, {
        "s3.endpoint": endpoint, "s3.access-key-id": "any", "s3.secret-access-key": "any", "s3.region": "us-east-1",
    })
    return table.scan().to_arrow()


def duckdb(location, endpoint):
    import importlib

    import duckdb as db

    c = db.connect(config={"autoinstall_known_extensions": "false", "autoload_known_extensions": "false", "allow_unsigned_extensions": "true"})
    for name in ("avro", "httpfs", "iceberg"):
        root = list(importlib.import_module(f"duckdb_extension_{name}").__path__)[0]
        c.execute(f"LOAD '{root}/extensions/v{db.__version__}/{name}.duckdb_extension'")
    host = endpoint.split("://")[1]
    for setting, value in {"s3_endpoint": host, "s3_use_ssl": "false", "s3_url_style": "path", "s3_region": "us-east-1",
                           "s3_access_key_id": "any", "s3_secret_access_key": "any", "TimeZone": "UTC"}.items():
        c.execute(f"SET {setting} = '{value}'")
    result = c.execute(f"SELECT * FROM iceberg_scan('{location}')")
    return result.fetch_arrow_table()


reader, location, endpoint = sys.argv[1:]
table = {"pyiceberg": pyiceberg, "duckdb": duckdb}[reader](location, endpoint)
columns = [portable(table.column(i)) for i in range(table.num_columns)]
for row in zip(*columns):
    print(json.dumps(dict(zip(table.column_names, row))))
