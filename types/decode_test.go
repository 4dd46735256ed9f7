package types

import (
	"bytes"
	"encoding/json"
	"os"
	"reflect"
	"slices"
	"testing"
)

// oddities is what stands where something else was expected: JSON of every
// kind, and strings at the edges of what a time, an address, a mask or a UUID
// may be.
var oddities = []string{
	`null`, `true`, `-1`, `-0`, `0`, `1.5`, `1e2`, `1E400`, `256`, `4294967296`, `9007199254740993`, `18446744073709551615`,
	`[]`, `[null]`, `[1,2,3]`, `[[]]`, `[{}]`, `{}`, `{"":{}}`, `{"Error":{}}`, `{"":null," ":{"":{}}}`,
	`""`, `"null"`, `"\ud800"`, "\"\xff<\xfe>\"", `"\u0000\u2028&"`,
	`"0001-01-01T00:00:00Z"`, `"0001-01-01T00:00:00+01:00"`, `"0000-01-01T00:00:00+23:59"`, `"0000-01-01T00:00:00-23:59"`,
	`"9999-12-31T23:59:59.999999999-23:59"`, `"2026-03-29T02:30:00+01:00"`, `"1900-01-01T00:00:00-00:00"`, `"2026-03-04T05:06:07+24:00"`,
	`"2026-03-04T05:06:07.0000000000001Z"`, `"2026-03-04T05:06:07,5Z"`, `"2026-12-31T23:59:60Z"`, `"2026-02-29T00:00:00Z"`,
	`"::ffff:10.1.2.3"`, `"fe80::1%eth0"`, `"010.1.2.3"`, `"::"`, `"0.0.0.0"`, `"10.1.2"`,
	`"/w=="`, `"////"`, `"/wD/AA=="`, `"//8A//8A//8A//8A//8A//8A//8="`, `"/w"`, `"_w=="`, `"//8\r\nAA=="`,
	`"5D1F3A52-0C5F-4A8E-9A3B-7A1E0B9C4D2E"`, `"{5d1f3a52-0c5f-4a8e-9a3b-7a1e0b9c4d2e]"`, `"5d1f3a520c5f4a8e9a3b7a1e0b9c4d2e"`,
	`"urn:uuid:5d1f3a52-0c5f-4a8e-9a3b-7a1e0b9c4d2e"`,
}

func TestOddValuesDecodeToOnesThatLastOrNotAtAll(t *testing.T) {
	for _, tp := range topics {
		t.Run(tp.name(), func(t *testing.T) {
			t.Parallel()
			sample, err := os.ReadFile("testdata/" + tp.name() + ".json")
			if err != nil {
				t.Fatal(err)
			}
			for _, variant := range odd(t, sample) {
				decodeEncodeDecode(t, reflect.TypeOf(tp.value).Elem(), variant)
			}
		})
	}
}

// odd is sample as someone else may send it: with every value in turn replaced
// by every oddity, or said again as one, which counts; and with its keys in
// capitals.
func odd(t *testing.T, sample []byte) (variants [][]byte) {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(sample))
	d.UseNumber()
	var root any
	if err := d.Decode(&root); err != nil {
		t.Fatal(err)
	}
	each(&root, func() {
		data, err := json.Marshal(root)
		if err != nil {
			t.Fatal(err)
		}
		variants = append(variants, data)
	})
	whole := bytes.TrimRight(sample, "}\n")
	for key := range root.(map[string]any) {
		for _, o := range oddities {
			variants = append(variants, slices.Concat(whole, []byte(`,"`+key+`":`+o+`}`)))
		}
	}
	return append(variants, bytes.ToUpper(sample))
}

// each calls do with every value below v replaced by every oddity.
func each(v *any, do func()) {
	old := *v
	for _, o := range oddities {
		*v = json.RawMessage(o)
		do()
	}
	*v = old
	switch old := old.(type) {
	case map[string]any:
		for k, field := range old {
			each(&field, func() { old[k] = field; do() })
			old[k] = field
		}
	case []any:
		for i := range old {
			each(&old[i], do)
		}
	}
}
