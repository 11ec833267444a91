package model

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math/big"
	"strconv"
	"time"

	icego "github.com/apache/iceberg-go"
	"github.com/google/uuid"

	"github.com/seaice/seaice/fault"
)

// valueToJSON is the JSON single-value form of the specification (appendix D),
// used for default values.
func valueToJSON(t icego.Type, v Value) any {
	switch v := v.(type) {
	case icego.Decimal:
		return new(big.Rat).SetFrac(v.Val.BigInt(), new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(v.Scale)), nil)).FloatString(v.Scale)
	case icego.Date:
		return time.Unix(int64(v)*86_400, 0).UTC().Format("2006-01-02")
	case icego.Time:
		return time.UnixMicro(int64(v)).UTC().Format("15:04:05.000000")
	case icego.Timestamp:
		return time.UnixMicro(int64(v)).UTC().Format("2006-01-02T15:04:05.000000") + zoneOf(t)
	case icego.TimestampNano:
		return time.Unix(0, int64(v)).UTC().Format("2006-01-02T15:04:05.000000000") + zoneOf(t)
	case uuid.UUID:
		return v.String()
	case []byte:
		return hex.EncodeToString(v)
	default:
		return v
	}
}

func zoneOf(t icego.Type) string {
	switch t.(type) {
	case icego.TimestampTzType, icego.TimestampTzNsType:
		return "+00:00"
	}
	return ""
}

// valueFromJSON reads what valueToJSON wrote, or what a JSON decoder made of it.
func valueFromJSON(t icego.Type, v any) (Value, error) {
	switch x := v.(type) {
	case nil:
		return nil, nil
	case json.Number:
		switch t.(type) {
		case icego.Float32Type, icego.Float64Type:
			f, err := x.Float64()
			if err != nil {
				return nil, fault.Wrap(fault.Corrupt, "read default of type "+t.String(), err)
			}
			return Coerce(t, f)
		}
		n, err := x.Int64()
		if err != nil {
			return nil, fault.Wrap(fault.Corrupt, "read default of type "+t.String(), err)
		}
		return Coerce(t, n)
	case float64:
		switch t.(type) {
		case icego.Int32Type, icego.Int64Type:
			if x != float64(int64(x)) {
				return nil, fault.New(fault.Corrupt, fmt.Sprintf("default %s is no %s", strconv.FormatFloat(x, 'g', -1, 64), t))
			}
			return Coerce(t, int64(x))
		}
	case string:
		switch t.(type) {
		case icego.BinaryType, icego.FixedType:
			b, err := hex.DecodeString(x)
			if err != nil {
				return nil, fault.Wrap(fault.Corrupt, "read default of type "+t.String(), err)
			}
			return Coerce(t, b)
		}
	}
	return Coerce(t, v)
}
