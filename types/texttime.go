package types

import "time"

// TextTime is a time that has the same JSON as a time.Time and costs less to write:
// of what a MarshalJSON returns encoding/json reads every byte again. It is for
// lists of thousands.
type TextTime time.Time

// MarshalText implements encoding.TextMarshaler: RFC 3339, with as many digits of a
// second as there are. It fails where the year has not four digits.
func (t TextTime) MarshalText() ([]byte, error) { return time.Time(t).MarshalText() }

// UnmarshalText implements encoding.TextUnmarshaler.
func (t *TextTime) UnmarshalText(text []byte) error { return (*time.Time)(t).UnmarshalText(text) }

// Time returns it as what it is.
func (t TextTime) Time() time.Time { return time.Time(t) }

// Equal reports whether both are the same instant.
func (t TextTime) Equal(other TextTime) bool { return t.Time().Equal(other.Time()) }

// String implements fmt.Stringer.
func (t TextTime) String() string { return t.Time().String() }
