package config

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// value is a parsed setting; which field counts depends on the kind. Sizes are
// in bytes and times in nanoseconds.
type value struct {
	i     int64
	f     float64
	b     bool
	s     string
	list  []string
	ops   OperationSet
	pools map[string]int64
}

// PoolNames are the worker's pools, by the weight of what they run.
func PoolNames() []string { return []string{"metadata", "light", "heavy"} }

// parse reads raw as a value of d. The unit and bounds are those of the place
// it was found at. said is false for a text that leaves the value to the
// layers below. reason is empty if the text is good.
func (d *Definition) parse(raw string, at Place) (v value, said bool, reason string) {
	text := strings.TrimSpace(raw)
	if text == "" {
		return v, false, ""
	}
	if len(text) > MaxText && d.Kind != KindRules {
		return v, false, fmt.Sprintf("is longer than %d bytes", MaxText)
	}
	switch d.Kind {
	case KindInt, KindSize, KindSpan:
		return d.parseNumber(text, at)
	case KindRatio:
		return d.parseRatio(text)
	case KindBool:
		v.b, reason = parseBool(text)
	case KindEnum:
		v.s, reason = d.parseChoice(text)
	case KindText, KindRules:
		v.s, reason = text, checkText(text)
	case KindName:
		v.s, reason = text, checkName(text)
	case KindList:
		v.list, reason = splitList(text), checkText(text)
	case KindOperations:
		v.ops, reason = parseOperations(text)
	case KindPools:
		v.pools, reason = d.parsePools(text, at)
	}
	return v, reason == "", reason
}

func (d *Definition) parseNumber(text string, at Place) (v value, said bool, reason string) {
	n, err := strconv.ParseInt(text, 10, 64)
	switch {
	case err != nil && !isWhole(text):
		return v, false, "is not a whole number; allowed is " + d.allowed(at)
	case err != nil:
		return v, false, "is out of range; allowed is " + d.allowed(at)
	case n == 0 && (d.ZeroIsDefault || at.zeroSaysNothing()):
		return v, false, ""
	case n < at.Min || n > at.Max:
		return v, false, "is out of range; allowed is " + d.allowed(at)
	}
	f := at.Unit.factor()
	if n > math.MaxInt64/f {
		if d.Kind == KindSpan {
			return value{i: int64(Forever)}, true, ""
		}
		return v, false, "is out of range; allowed is " + d.allowed(at)
	}
	return value{i: n * f}, true, ""
}

// zeroSaysNothing: the built-in worker ignores a property that is not
// positive. Here a zero is ignored and a negative number is refused.
func (p Place) zeroSaysNothing() bool { return p.Name != "" && p.Min > 0 }

func isWhole(text string) bool {
	digits := strings.TrimPrefix(strings.TrimPrefix(text, "-"), "+")
	return digits != "" && strings.Trim(digits, "0123456789") == ""
}

func (d *Definition) parseRatio(text string) (v value, said bool, reason string) {
	f, err := strconv.ParseFloat(text, 64)
	lo, hi := float64(d.Min)/1000, float64(d.Max)/1000
	if err != nil || math.IsNaN(f) || f < lo || f > hi {
		return v, false, fmt.Sprintf("must be a number from %g to %g", lo, hi)
	}
	return value{f: f}, true, ""
}

func parseBool(text string) (b bool, reason string) {
	switch strings.ToLower(text) {
	case "true", "1", "yes":
		return true, ""
	case "false", "0", "no":
		return false, ""
	}
	return false, "must be true or false"
}

func (d *Definition) parseChoice(text string) (s, reason string) {
	var names []string
	for _, o := range d.Options {
		if strings.EqualFold(o.Value, text) {
			return o.Value, ""
		}
		names = append(names, o.Value)
	}
	return "", "must be one of " + strings.Join(names, ", ")
}

func checkText(text string) string {
	if !utf8.ValidString(text) {
		return "is not valid UTF-8"
	}
	if strings.ContainsRune(text, 0) {
		return "contains a zero byte"
	}
	return ""
}

func checkName(text string) string {
	if r := checkText(text); r != "" {
		return r
	}
	if strings.ContainsFunc(text, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }) {
		return "may not contain white space or control characters"
	}
	return ""
}

func (d *Definition) parsePools(text string, at Place) (map[string]int64, string) {
	out := map[string]int64{}
	names := strings.Join(PoolNames(), ", ")
	for _, part := range splitList(text) {
		name, number, ok := strings.Cut(part, "=")
		name = strings.TrimSpace(name)
		if !ok || !slices.Contains(PoolNames(), name) {
			return nil, fmt.Sprintf("has %q; each part is pool=number, the pools are %s", part, names)
		}
		if _, twice := out[name]; twice {
			return nil, fmt.Sprintf("names pool %s twice", name)
		}
		n, err := strconv.ParseInt(strings.TrimSpace(number), 10, 64)
		if err != nil || n < at.Min || n > at.Max {
			return nil, fmt.Sprintf("has %q; allowed is %s", part, d.allowed(at))
		}
		out[name] = n * at.Unit.factor()
	}
	return out, ""
}

// allowed is the range at a place in words.
func (d *Definition) allowed(at Place) string {
	unit := ""
	if at.Unit != UnitNone {
		unit = " " + string(at.Unit)
	}
	most := strconv.FormatInt(at.Max, 10)
	out := fmt.Sprintf("%d to %s%s", at.Min, most, unit)
	if d.ZeroIsDefault && at.Name == "" {
		out += fmt.Sprintf(", or 0 for the default of %s", d.Default)
	}
	return out
}

// show is the value as text in the unit of the form.
func (d *Definition) show(v value) string {
	switch d.Kind {
	case KindInt:
		return strconv.FormatInt(v.i, 10)
	case KindSize, KindSpan:
		return showQuantity(v.i, d.Unit, d.Kind)
	case KindRatio:
		return strconv.FormatFloat(v.f, 'g', -1, 64)
	case KindBool:
		return strconv.FormatBool(v.b)
	case KindList:
		return strings.Join(v.list, ",")
	case KindOperations:
		return v.ops.String()
	case KindPools:
		var parts []string
		for _, name := range PoolNames() {
			if n, ok := v.pools[name]; ok {
				parts = append(parts, fmt.Sprintf("%s=%d", name, n/d.Unit.factor()))
			}
		}
		return strings.Join(parts, ",")
	default:
		return v.s
	}
}

// showQuantity writes n in u; what u cannot hold exactly gets decimals.
func showQuantity(n int64, u Unit, k Kind) string {
	if k == KindSpan && n == int64(Forever) {
		return "forever"
	}
	f := u.factor()
	if n%f == 0 {
		return strconv.FormatInt(n/f, 10)
	}
	return strconv.FormatFloat(float64(n)/float64(f), 'g', 6, 64)
}

// full adds the pools a text did not name from the default.
func (d *Definition) full(v value) value {
	if d.Kind != KindPools {
		return v
	}
	all, _, _ := d.parse(d.Default, d.home())
	merged := maps.Clone(all.pools)
	maps.Copy(merged, v.pools)
	v.pools = merged
	return v
}

// home is the place of the form, rules and command line.
func (d *Definition) home() Place { return Place{Unit: d.Unit, Min: d.Min, Max: d.Max} }
