package pubsub

import (
	"bytes"
	"encoding/json"
	"reflect"
	"testing"
)

// FuzzPacket decodes arbitrary packets: nothing crashes, and what is accepted
// means the same after a round trip through our own encoder.
func FuzzPacket(f *testing.F) {
	for _, s := range []string{
		"hello Sample", "hello Sample true", "complete Sample", "restarted Sample 3", "delete Sample Zw==",
		"update Sample Zw== eyJOIjoxfQ==", "update Sample Zw== !", "update Sample", "update  Sample Zw== e30=", "", " ",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		p, err := decodePacket("Sample", b)
		if err != nil {
			return
		}
		var again []byte
		switch p.verb {
		case verbUpdate:
			again = updatePacket("Sample", p.key, p.value)
		case verbDelete:
			again = deletePacket("Sample", p.key)
		default:
			return
		}
		q, err := decodePacket("Sample", again)
		if err != nil || q.verb != p.verb || q.key != p.key || !bytes.Equal(q.value, p.value) {
			t.Errorf("%q became %q after a round trip: %v", b, again, err)
		}
	})
}

// FuzzLarge follows references in arbitrary JSON: nothing crashes, and no path
// outside of the directory is taken.
func FuzzLarge(f *testing.F) {
	f.Add([]byte(`{"a":[{"pubsub-file-X":"\"/d/pubsub-file-X1\""}],"pubsub-file-Y":1}`))
	f.Add([]byte(`{"pubsub-file-":"\"/d/../x\""}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		_, _ = joinLarge(b, func(path string) ([]byte, error) {
			return takeLarge("/does/not/exist", path)
		})
		var decoded map[string]json.RawMessage
		if cut, ok := members(b); ok && json.Unmarshal(b, &decoded) == nil && !reflect.DeepEqual(cut, decoded) {
			t.Errorf("the members of %q are %q, not %q", b, decoded, cut)
		}
		_, _ = splitLarge(b, func(field string, _ []byte) (string, error) { return "/" + field, nil })
	})
}
