package types

import (
	"strconv"
	"time"

	"github.com/google/uuid"
)

// enumName is the name of an enum's value, or kind and number of one without:
// a newer EVE may have added it.
func enumName[T ~int8 | ~uint8 | ~int32](kind string, names []string, v T) string {
	if v >= 0 && int(v) < len(names) && names[v] != "" {
		return names[v]
	}
	return kind + "(" + strconv.Itoa(int(v)) + ")"
}

// UUIDandVersion is EVE's identity of a configured object.
type UUIDandVersion struct {
	UUID    uuid.UUID
	Version string
}

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

// ErrorSeverity grades an ErrorDescription (docs/wire.md, "JSON rules").
type ErrorSeverity int32

// The severities EVE knows.
const (
	ErrorSeverityUnspecified ErrorSeverity = iota
	ErrorSeverityNotice
	ErrorSeverityWarning
	ErrorSeverityError
)

func (s ErrorSeverity) String() string {
	return enumName("ErrorSeverity", []string{"Unspecified", "Notice", "Warning", "Error"}, s)
}

// ErrorEntity names an object that an error is about.
type ErrorEntity struct {
	EntityType int32
	EntityID   string
}

// ErrorDescription is EVE's error object. The zero value means "no error".
type ErrorDescription struct {
	Error               string
	ErrorTime           time.Time
	ErrorSeverity       ErrorSeverity
	ErrorRetryCondition string
	ErrorEntities       []*ErrorEntity
}

// Dated is the error with that text, "" for none. While the text is that of
// old, so is the time at which it first stood.
func Dated(text string, old ErrorDescription, now time.Time) ErrorDescription {
	switch text {
	case "":
		return ErrorDescription{}
	case old.Error:
		return old
	}
	return ErrorDescription{Error: text, ErrorTime: now, ErrorSeverity: ErrorSeverityError}
}
