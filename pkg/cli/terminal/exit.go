package terminal

import "errors"

// The exit codes of the commands (docs/wire.md, "Process").
const (
	ExitUsage          = 1
	ExitNotPublished   = 2 // or the API server cannot be asked
	ExitDrainFailed    = 3
	ExitJoinTimeout    = 4
	ExitJoinWithdrawn  = 5
	ExitDetachRefused  = 3
	ExitDetachTimeout  = 4
	ExitExportDoubtful = 3
	exitUnknownCommand = 99
)

// exitError is an error with an exit code of its own.
type exitError struct {
	code int
	error
}

// ExitWith is err with the exit code that the process ends with for it.
func ExitWith(code int, err error) error { return exitError{code, err} }

// Unwrap gives the reason.
func (e exitError) Unwrap() error { return e.error }

// ExitCode is what the process ends with.
func ExitCode(err error) int {
	var e exitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &e):
		return e.code
	default:
		return 1
	}
}

// ExitFound is the exit code of a check that has found a problem.
const ExitFound = 3

// ShowExitCodes are those of the commands that show something.
const ShowExitCodes = `Exit codes:
  0   it was shown
  1   wrong usage, this is not a device, or it could not be printed
  2   there is nothing to show
  3   "status --check": something is wrong
  99  unknown command`
