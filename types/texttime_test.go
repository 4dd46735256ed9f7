package types

import (
	"encoding/json"
	"testing"
	"time"
)

func TestATextTimeHasTheJSONOfATime(t *testing.T) {
	for _, at := range []time.Time{
		{},
		time.Unix(0, 0).UTC(), time.Date(2026, 8, 1, 12, 30, 0, 123456789, time.UTC), time.Date(9999, 12, 31, 23, 59, 59, 1, time.UTC),
		time.Date(2026, 8, 1, 12, 30, 0, 5e8, time.FixedZone("", -7*3600)), time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(-1, 1, 1, 0, 0, 0, 0, time.UTC),
	} {
		want, wantErr := json.Marshal(at)
		got, err := json.Marshal(TextTime(at))
		if string(got) != string(want) || (err == nil) != (wantErr == nil) {
			t.Errorf("%s is %s, %v; want %s, %v", at, got, err, want, wantErr)
		}
	}
	for _, text := range []string{
		`"2026-08-01T12:30:00.5+02:00"`, `"0001-01-01T00:00:00Z"`, `null`, `""`, `"2026-08-01"`, `"2026-8-1T12:30:00Z"`, `"2026-08-01T12:30:00,5Z"`, `7`, `{}`,
	} {
		want, got := time.Unix(9, 0), TextTime(time.Unix(9, 0))
		wantErr, err := json.Unmarshal([]byte(text), &want), json.Unmarshal([]byte(text), &got)
		if (err == nil) != (wantErr == nil) || err == nil && !got.Time().Equal(want) {
			t.Errorf("%s is %s, %v; want %s, %v", text, got, err, want, wantErr)
		}
	}
}
