package main

import (
	"fmt"
	"strings"

	"github.com/seaice/seaice/fault"
)

// assignments reads name=value texts. A name may come once.
func assignments(list []string) (map[string]string, error) {
	out := map[string]string{}
	for _, a := range list {
		name, value, ok := strings.Cut(a, "=")
		name = strings.TrimSpace(name)
		if !ok || name == "" {
			return nil, fault.New(fault.Unsupported, fmt.Sprintf("setting %q is not of the form name=value", a))
		}
		if _, twice := out[name]; twice {
			return nil, fault.New(fault.Unsupported, fmt.Sprintf("%s is set twice", name))
		}
		out[name] = value
	}
	return out, nil
}
