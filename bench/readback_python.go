package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
)

// pythonScans reads files with the reader named, each time it is given a line
// with their paths, and answers with the rows and the processor time. One thread
// decodes; all values of all columns are made.
const pythonScans = `
import json, sys, time
reader = sys.argv[1]
if reader == "duckdb":
    import duckdb
    d = duckdb.connect()
    d.execute("SET threads = 1")
    d.execute("SET enable_progress_bar = false")
    def scan(paths):
        rel = d.execute("SELECT * FROM read_parquet($paths)", {"paths": paths})
        return sum(b.num_rows for b in rel.to_arrow_reader(65536))
elif reader == "pyarrow":
    import pyarrow as pa, pyarrow.parquet as pq
    pa.set_cpu_count(1)
    pa.set_io_thread_count(1)
    def scan(paths):
        rows = 0
        for p in paths:
            for b in pq.ParquetFile(p, memory_map=True).iter_batches(65536, use_threads=False):
                rows += b.num_rows
        return rows
else:
    sys.exit("no reader " + reader)
for line in sys.stdin:
    paths = json.loads(line)
    before = time.process_time()
    rows = scan(paths)
    print(json.dumps({"rows": rows, "seconds": time.process_time() - before}), flush=True)
`

// python is a process that reads files when told to.
type python struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

var errNoPython = errors.New("SEAICE_PYTHON names no Python with pyarrow and duckdb")

func inPython(name string) func(context.Context) (reader, error) {
	return func(ctx context.Context) (reader, error) {
		program := os.Getenv("SEAICE_PYTHON")
		if program == "" {
			return nil, errNoPython
		}
		p := &python{cmd: exec.CommandContext(ctx, program, "-c", pythonScans, name)}
		p.cmd.Stderr = os.Stderr
		var err error
		if p.in, err = p.cmd.StdinPipe(); err != nil {
			return nil, err
		}
		out, err := p.cmd.StdoutPipe()
		if err != nil {
			return nil, err
		}
		p.out = bufio.NewReader(out)
		return p, p.cmd.Start()
	}
}

func (p *python) scan(_ context.Context, o *outputs) (rows int64, seconds float64, err error) {
	if err := json.NewEncoder(p.in).Encode(o.paths); err != nil {
		return 0, 0, err
	}
	line, err := p.out.ReadBytes('\n')
	if err != nil {
		return 0, 0, fmt.Errorf("answer of Python: %w", err)
	}
	var answer struct {
		Rows    int64
		Seconds float64
	}
	err = json.Unmarshal(line, &answer)
	return answer.Rows, answer.Seconds, err
}

func (p *python) close() error { return errors.Join(p.in.Close(), p.cmd.Wait()) }
