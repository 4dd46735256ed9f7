package terminal

import (
	"bytes"
	"testing"
	"time"
)

func TestATimeThatIsNotKnownIsLeftOut(t *testing.T) {
	at := time.Date(2026, 5, 3, 6, 41, 17, 0, time.UTC)
	type in struct {
		At   time.Time
		Text string
		Last time.Time
	}
	for want, data := range map[string]any{
		`{"APIVersion":"zedkube/v1","Kind":"K","At":"2026-05-03T06:41:17Z","Text":""}`:                                    in{At: at},
		`{"APIVersion":"zedkube/v1","Kind":"K","Text":"<,\"At\":\"0001-01-01T00:00:00Z\"","Last":"2026-05-03T06:41:17Z"}`: in{Text: `<,"At":"0001-01-01T00:00:00Z"`, Last: at},
		`{"APIVersion":"zedkube/v1","Kind":"K","Items":[{}]}`:                                                             []struct{ A, B time.Time }{{}},
		`{"APIVersion":"zedkube/v1","Kind":"K"}`:                                                                          struct{ A time.Time }{},
		`{"APIVersion":"zedkube/v1","Kind":"K","Items":"text"}`:                                                           "text",
		`{"apiVersion":"x/v1","kind":"Cluster"}`:                                                                          map[string]string{"apiVersion": "x/v1", "kind": "Cluster"},
	} {
		var b bytes.Buffer
		o := Outputs{form: formJSON, kind: "K"}
		if err := o.Encode(&b, data, ""); err != nil || b.String() != want+"\n" {
			t.Errorf("%v, got %s, want %s", err, b.String(), want)
		}
	}
	var b bytes.Buffer
	o := Outputs{form: formJSON, kind: "K"}
	o.Foreign()
	if err := o.Encode(&b, []int{1}, ""); err != nil || b.String() != "[1]\n" {
		t.Errorf("%v, of others it prints %s", err, b.String())
	}
}
