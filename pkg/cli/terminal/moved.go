package terminal

import "github.com/spf13/cobra"

// movedTo is the annotation of a command under a name that is not shown: the one that is.
const movedTo = "zedkube/moved-to"

// Moved marks a command, and all below it, that is kept under an older name for one release: it
// is not shown, and says on stderr what it is called now.
func Moved(c *cobra.Command, now string) *cobra.Command {
	c.Annotations = map[string]string{movedTo: now}
	c.Deprecated = "it is now \"zedkube " + now + "\"; the next release has no other name for it"
	for _, sub := range c.Commands() {
		Moved(sub, now+" "+sub.Name())
	}
	return c
}

// Known marks a command that EVE's own scripts and people call so: it stays for good, and is not
// shown.
func Known(c *cobra.Command, now string) *cobra.Command {
	c.Annotations = map[string]string{movedTo: now}
	c.Hidden = true
	return c
}

// Called is a command under another name.
func Called(name string, c *cobra.Command) *cobra.Command {
	c.Use = name + c.Use[len(c.Name()):]
	return c
}
