package report

import (
	"math"
	"reflect"
	"strings"

	"queuelab/bench/trial"
)

// normal gives every list and map of the result a value, so that nobody who
// reads the JSON meets a null where the form says list; and it puts 0 for a
// number that JSON cannot hold, since a run must not be lost to one division by
// zero. The result itself stays as it is.
func normal(r trial.Result) trial.Result {
	out := normalValue(reflect.ValueOf(r), false).Interface().(trial.Result)
	out.Schema = trial.Schema
	return out
}

// normalValue is a copy of v; optional lists are left out of the JSON when
// they are empty, and so are nil.
func normalValue(v reflect.Value, optional bool) reflect.Value {
	out := reflect.New(v.Type()).Elem()
	switch v.Kind() {
	case reflect.Float64, reflect.Float32:
		out.SetFloat(finite(v.Float()))
	case reflect.Pointer:
		if !v.IsNil() {
			out.Set(reflect.New(v.Type().Elem()))
			out.Elem().Set(normalValue(v.Elem(), false))
		}
	case reflect.Slice:
		if v.Len() == 0 && optional {
			return out
		}
		out.Set(reflect.MakeSlice(v.Type(), v.Len(), v.Len()))
		for i := range v.Len() {
			out.Index(i).Set(normalValue(v.Index(i), false))
		}
	case reflect.Map:
		if v.Len() == 0 && optional {
			return out
		}
		out.Set(reflect.MakeMapWithSize(v.Type(), v.Len()))
		for k, e := range v.Seq2() {
			out.SetMapIndex(k, normalValue(e, false))
		}
	case reflect.Struct:
		out.Set(v) // what is not exported, such as a time's, comes along
		for i := range v.NumField() {
			if f := v.Type().Field(i); f.IsExported() {
				out.Field(i).Set(normalValue(v.Field(i), strings.Contains(f.Tag.Get("json"), ",omitempty")))
			}
		}
	default:
		out.Set(v)
	}
	return out
}

func finite(v float64) float64 {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return 0
	}
	return v
}
