package cluster

import (
	"errors"
	"math/rand/v2"
	"net"
	"strconv"
)

const (
	host = "127.0.0.1"
	// A server's gRPC port is 10 000 above its HTTP port, and both stay below
	// the ports that the kernel hands out to clients.
	firstPort = 10000
	lastPort  = 22767
	grpcAbove = 10000
)

// freePorts returns n ports that nobody listens on at present, nor on the gRPC
// ports above them.
func freePorts(n int) ([]int, error) {
	var out []int
	seen := map[int]bool{}
	for tries := 0; len(out) < n; tries++ {
		if tries > 2000 {
			return nil, errors.New("no free ports between 10000 and 22767")
		}
		p := firstPort + rand.IntN(lastPort-firstPort+1)
		if !seen[p] && free(p) && free(p+grpcAbove) {
			out = append(out, p)
		}
		seen[p] = true
	}
	return out, nil
}

func free(port int) bool {
	l, err := net.Listen("tcp", address(port))
	if err != nil {
		return false
	}
	return l.Close() == nil
}

func address(port int) string { return net.JoinHostPort(host, strconv.Itoa(port)) }
