package pubsub

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestMembersAreThoseThatEncodingJSONFinds(t *testing.T) {
	for _, object := range []string{
		`{"a":1}`, `{"a":-1.5e3,"b":true,"c":null,"d":"x"}`, `{"a":"},:\"{[","b\"\\":[{"c":"]"}],"d":{"e":{}}}`,
		" {\n \"a\" :\t[ 1, 2 ] ,\r\"b\": { \"c\" : 3 } }\n", `{"a":1,"a":2}`, `{"\u00e4\n":"\\"}`,
	} {
		var want map[string]json.RawMessage
		if err := json.Unmarshal([]byte(object), &want); err != nil {
			t.Fatal(err)
		}
		got, ok := members([]byte(object))
		if d := cmp.Diff(want, got); !ok || d != "" {
			t.Errorf("%s: %v, want -, got +\n%s", object, ok, d)
		}
	}
	for _, other := range []string{``, ` `, `{}`, `[]`, `1`, `"{"`, `{"a":1`, `{"a":"`, `{"a":"\`, `{a:1}`, `{"a"}`, `{"a":1}{`, `{"a":1} x`} {
		if got, ok := members([]byte(other)); ok {
			t.Errorf("%s is cut into %v", other, got)
		}
	}
}
