// Command sbom says what a Go program is made of: a CycloneDX document of every module that is linked into it, with the
// licence that the module's own files carry, and the texts of those licences. It works on the finished binary and
// without network.
//
//	go run ./test/sbom [-version V] [-notices FILE] BINARY DOCUMENT
//
// It fails when a module's licence cannot be told or is none of those that the program may contain. The same binary
// gives the same document: its time is SOURCE_DATE_EPOCH.
package main

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

func main() {
	version := flag.String("version", os.Getenv("VERSION"), "version of the program (default $VERSION)")
	notices := flag.String("notices", "", "file for the texts of all licences")
	flag.Parse()
	if flag.NArg() != 2 {
		fmt.Fprintln(os.Stderr, "usage: sbom [-version V] [-notices FILE] BINARY DOCUMENT")
		os.Exit(1)
	}
	if err := run(flag.Arg(0), flag.Arg(1), *version, *notices); err != nil {
		fmt.Fprintln(os.Stderr, "sbom:", err)
		os.Exit(1)
	}
}

func run(binary, document, version, notices string) error {
	content, err := os.ReadFile(binary)
	if err != nil {
		return fmt.Errorf("read program: %w", err)
	}
	info, err := buildinfo.Read(bytes.NewReader(content))
	if err != nil {
		return fmt.Errorf("read what %s was built of: %w", binary, err)
	}
	at, err := sourceTime(os.Getenv("SOURCE_DATE_EPOCH"))
	if err != nil {
		return err
	}
	dirs, err := directories(info)
	if err != nil {
		return err
	}
	p := program{info: info, sum: sha256.Sum256(content), version: cmp.Or(version, info.Main.Version), at: at}
	var problems []error
	for _, m := range p.modules() {
		l, err := readLicence(dirs[m.Path])
		if err != nil {
			problems = append(problems, fmt.Errorf("licence of %s %s: %w", m.Path, m.Version, err))
		}
		p.licences = append(p.licences, l)
	}
	if err := errors.Join(problems...); err != nil {
		return err
	}
	if notices != "" {
		if err := os.WriteFile(notices, p.notices(), 0o644); err != nil {
			return fmt.Errorf("write licences: %w", err)
		}
	}
	out, err := json.MarshalIndent(p.bill(), "", "  ")
	if err == nil {
		err = os.WriteFile(document, append(out, '\n'), 0o644)
	}
	if err != nil {
		return fmt.Errorf("write document: %w", err)
	}
	return nil
}

// sourceTime is the time of the source, in seconds since 1970; the beginning of 1970 where it is not said.
func sourceTime(epoch string) (time.Time, error) {
	seconds, err := strconv.ParseInt(cmp.Or(epoch, "0"), 10, 64)
	if err != nil {
		return time.Time{}, fmt.Errorf("SOURCE_DATE_EPOCH: %w", err)
	}
	return time.Unix(seconds, 0).UTC(), nil
}

// directories are where the source of each module lies, by the module's path.
func directories(info *buildinfo.BuildInfo) (map[string]string, error) {
	goroot, err := goTool("env", "GOROOT")
	if err != nil {
		return nil, err
	}
	dirs := map[string]string{std: strings.TrimSpace(goroot)}
	args := []string{"list", "-m", "-f", "{{.Path}} {{.Version}} {{.Dir}}", info.Main.Path}
	wanted := map[string]string{info.Main.Path: ""}
	for _, m := range info.Deps {
		wanted[m.Path] = m.Version
		args = append(args, m.Path)
	}
	list, err := goTool(args...)
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(list) {
		f := strings.SplitN(strings.TrimSpace(line), " ", 3)
		if len(f) != 3 {
			return nil, fmt.Errorf("go list: unexpected line %q", line)
		}
		if f[1] != wanted[f[0]] {
			return nil, fmt.Errorf("the program has %s %s, this source %s: build it anew", f[0], wanted[f[0]], f[1])
		}
		dirs[f[0]] = f[2]
	}
	return dirs, nil
}

func goTool(args ...string) (string, error) {
	c := exec.Command("go", args...)
	c.Stderr = os.Stderr
	out, err := c.Output()
	if err != nil {
		return "", fmt.Errorf("go %s: %w", args[0], err)
	}
	return string(out), nil
}
