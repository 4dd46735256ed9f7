package types

import "time"

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
