// Command provenance says of which source, with what and by whom the files of a release were made: an in-toto statement
// with the predicate of SLSA, https://slsa.dev/spec/v1.0/provenance. Whoever signs it vouches for it.
//
//	VERSION=V REVISION=COMMIT [BUILDER=URI] go run ./test/provenance SUMS STATEMENT
//
// SUMS is what sha256sum prints of the files. The same files of the same source give the same statement.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"regexp"
	"runtime"
	"strings"
)

const (
	source = "https://github.com/zedkube/zedkube"
	// byMake is the kind of build: how it is done by hand, too.
	byMake = source + "/blob/main/docs/contributing.md#releases"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: provenance SUMS STATEMENT")
		os.Exit(1)
	}
	if err := run(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "provenance:", err)
		os.Exit(1)
	}
}

func run(sums, statement string) error {
	content, err := os.ReadFile(sums)
	if err != nil {
		return fmt.Errorf("read checksums: %w", err)
	}
	s, err := provenance(string(content), os.Getenv("VERSION"), os.Getenv("REVISION"), os.Getenv("BUILDER"))
	if err != nil {
		return err
	}
	out, err := json.MarshalIndent(s, "", "  ")
	if err == nil {
		err = os.WriteFile(statement, append(out, '\n'), 0o644)
	}
	if err != nil {
		return fmt.Errorf("write statement: %w", err)
	}
	return nil
}

type object map[string]any

var (
	line   = regexp.MustCompile(`^([0-9a-f]{64})  ([^/\s]+)$`)
	commit = regexp.MustCompile(`^[0-9a-f]{40}([0-9a-f]{24})?$`)
)

// provenance is the statement of the files in sums. The source is a commit, so a tree that differs from one has none.
func provenance(sums, version, revision, builder string) (object, error) {
	if !commit.MatchString(revision) || version == "" || strings.HasSuffix(version, "-dirty") {
		return nil, fmt.Errorf("version %q of commit %q: only a commit, without changes, is a source that others can find", version, revision)
	}
	if builder == "" {
		builder = byMake
	}
	var subjects []object
	for text := range strings.Lines(sums) {
		m := line.FindStringSubmatch(strings.TrimSuffix(text, "\n"))
		if m == nil {
			return nil, fmt.Errorf("%q is no checksum of a file", text)
		}
		subjects = append(subjects, object{"name": m[2], "digest": object{"sha256": m[1]}})
	}
	if subjects == nil {
		return nil, errors.New("there is no checksum")
	}
	return object{
		"_type":         "https://in-toto.io/Statement/v1",
		"subject":       subjects,
		"predicateType": "https://slsa.dev/provenance/v1",
		"predicate": object{
			"buildDefinition": object{
				"buildType":          byMake,
				"externalParameters": object{"repository": source, "target": "release", "version": version},
				"internalParameters": object{"go": runtime.Version()},
				"resolvedDependencies": []object{
					{"uri": "git+" + source, "digest": object{"gitCommit": revision}},
				},
			},
			"runDetails": object{"builder": object{"id": builder}},
		},
	}, nil
}
