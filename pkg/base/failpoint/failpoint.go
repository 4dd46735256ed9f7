//go:build !failpoints

// Package failpoint is where the test build can be killed: before and after each
// effect of the agent on what is outside of its process (docs/contributing.md,
// "Kill points"). A released build has nothing of it: its functions only call what
// they are given.
package failpoint

import "context"

// Do carries out do, which has that effect on the file at path.
func Do(_, _ string, do func() error) error { return do() }

// As carries out do, which has that effect in the name of the component in ctx.
func As(_ context.Context, _ string, do func() error) error { return do() }
