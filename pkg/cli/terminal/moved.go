package terminal

import "github.com/spf13/cobra"

// movedTo is the annotation of a command under a name that it had before: its new one.
const movedTo = "zedkube/moved-to"

// Moved marks a command that is kept under an older name for one release: it is not shown, and
// says on stderr what it is called now.
func Moved(c *cobra.Command, now string) *cobra.Command {
	c.Annotations = map[string]string{movedTo: now}
	c.Deprecated = "it is now \"zedkube " + now + "\", and the next release has it under that name only"
	return c
}

// Known marks a command that EVE's own scripts call: it is the one of that name, for good, and not
// shown.
func Known(c *cobra.Command, now string) *cobra.Command {
	c.Annotations = map[string]string{movedTo: now}
	c.Hidden = true
	return c
}
