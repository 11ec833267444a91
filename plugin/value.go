package plugin

import (
	"math"
	"strconv"
	"strings"

	"github.com/seaweedfs/seaweedfs/weed/pb/plugin_pb"
	"google.golang.org/protobuf/encoding/protojson"
)

// Value is one value on the wire: a whole number, a number, a truth value, a
// text or a list of texts. The zero value is an empty text.
type Value struct {
	kind  valueKind
	whole int64
	float float64
	text  string
	list  []string
}

type valueKind uint8

const (
	isText valueKind = iota
	isWhole
	isFloat
	isBool
	isList
)

// Int is a whole number.
func Int(n int64) Value { return Value{kind: isWhole, whole: n} }

// Float is a number.
func Float(f float64) Value { return Value{kind: isFloat, float: f} }

// Text is a text.
func Text(s string) Value { return Value{text: s} }

// Texts is a list of texts.
func Texts(list ...string) Value { return Value{kind: isList, list: append([]string(nil), list...)} }

// True and False are the truth values.
var (
	True  = Value{kind: isBool, whole: 1}
	False = Value{kind: isBool}
)

// String is the value as a setting would be written: lists with commas.
func (v Value) String() string {
	switch v.kind {
	case isWhole:
		return strconv.FormatInt(v.whole, 10)
	case isFloat:
		return strconv.FormatFloat(v.float, 'f', -1, 64)
	case isBool:
		return strconv.FormatBool(v.whole != 0)
	case isList:
		return strings.Join(v.list, ",")
	default:
		return v.text
	}
}

// Int64 is the value as a whole number; ok is false if it is none.
func (v Value) Int64() (n int64, ok bool) {
	switch v.kind {
	case isWhole:
		return v.whole, true
	case isFloat:
		if v.float == math.Trunc(v.float) && math.Abs(v.float) < 1<<53 {
			return int64(v.float), true
		}
		return 0, false
	case isText:
		n, err := strconv.ParseInt(v.text, 10, 64)
		return n, err == nil
	default:
		return 0, false
	}
}

func (v Value) wire() *plugin_pb.ConfigValue {
	switch v.kind {
	case isWhole:
		return &plugin_pb.ConfigValue{Kind: &plugin_pb.ConfigValue_Int64Value{Int64Value: v.whole}}
	case isFloat:
		return &plugin_pb.ConfigValue{Kind: &plugin_pb.ConfigValue_DoubleValue{DoubleValue: v.float}}
	case isBool:
		return &plugin_pb.ConfigValue{Kind: &plugin_pb.ConfigValue_BoolValue{BoolValue: v.whole != 0}}
	case isList:
		values := make([]string, len(v.list))
		for i, s := range v.list {
			values[i] = valid(s)
		}
		return &plugin_pb.ConfigValue{Kind: &plugin_pb.ConfigValue_StringList{StringList: &plugin_pb.StringList{Values: values}}}
	default:
		return &plugin_pb.ConfigValue{Kind: &plugin_pb.ConfigValue_StringValue{StringValue: valid(v.text)}}
	}
}

// valid replaces what is not UTF-8, which protobuf cannot carry: one file name
// in another encoding would otherwise break the stream, again and again.
func valid(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }

func wireValues(m map[string]Value) map[string]*plugin_pb.ConfigValue {
	if len(m) == 0 {
		return nil
	}
	out := make(map[string]*plugin_pb.ConfigValue, len(m))
	for k, v := range m {
		out[valid(k)] = v.wire()
	}
	return out
}

func readValue(v *plugin_pb.ConfigValue) Value {
	switch k := v.GetKind().(type) {
	case nil:
		return Value{}
	case *plugin_pb.ConfigValue_BoolValue:
		if k.BoolValue {
			return True
		}
		return False
	case *plugin_pb.ConfigValue_Int64Value:
		return Int(k.Int64Value)
	case *plugin_pb.ConfigValue_DoubleValue:
		return Float(k.DoubleValue)
	case *plugin_pb.ConfigValue_StringValue:
		return Text(k.StringValue)
	case *plugin_pb.ConfigValue_BytesValue:
		return Text(string(k.BytesValue))
	case *plugin_pb.ConfigValue_StringList:
		return Texts(k.StringList.GetValues()...)
	default:
		// Kinds no setting has: shown as JSON, so that a setting that gets one
		// is refused with the value in the message.
		b, err := protojson.Marshal(v)
		if err != nil {
			return Text(err.Error())
		}
		return Text(string(b))
	}
}

func readValues(m map[string]*plugin_pb.ConfigValue) map[string]Value {
	out := make(map[string]Value, len(m))
	for k, v := range m {
		out[k] = readValue(v)
	}
	return out
}

func readTexts(m map[string]*plugin_pb.ConfigValue) map[string]string {
	out := make(map[string]string, len(m))
	for k, v := range m {
		out[k] = readValue(v).String()
	}
	return out
}
