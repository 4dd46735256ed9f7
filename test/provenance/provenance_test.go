package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const (
	revision = "0123456789012345678901234567890123456789"
	sum      = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
)

func TestTheStatementNamesEachFileTheSourceAndWhoBuilt(t *testing.T) {
	got, err := provenance(sum+"  a.tar.gz\n"+strings.ReplaceAll(sum, "a", "b")+"  b.cdx.json\n", "v1.2.3", revision, "https://example.org/ci")
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := json.Marshal(got)
	if err != nil {
		t.Fatal(err)
	}
	var s struct {
		Type    string `json:"_type"`
		Subject []struct {
			Name   string
			Digest map[string]string
		}
		PredicateType string
		Predicate     struct {
			BuildDefinition struct {
				ExternalParameters   map[string]string
				ResolvedDependencies []struct {
					URI    string
					Digest map[string]string
				}
			}
			RunDetails struct{ Builder struct{ ID string } }
		}
	}
	if err := json.Unmarshal(encoded, &s); err != nil {
		t.Fatal(err)
	}
	said := []string{s.Type, s.PredicateType, s.Predicate.BuildDefinition.ExternalParameters["version"], s.Predicate.RunDetails.Builder.ID}
	for _, f := range s.Subject {
		said = append(said, f.Name+" "+f.Digest["sha256"][:4])
	}
	for _, d := range s.Predicate.BuildDefinition.ResolvedDependencies {
		said = append(said, d.URI+" "+d.Digest["gitCommit"])
	}
	if diff := cmp.Diff([]string{
		"https://in-toto.io/Statement/v1", "https://slsa.dev/provenance/v1", "v1.2.3", "https://example.org/ci",
		"a.tar.gz aaaa", "b.cdx.json bbbb", "git+https://github.com/zedkube/zedkube " + revision,
	}, said); diff != "" {
		t.Error(diff)
	}
}

func TestWhatIsNotKnownIsNotStated(t *testing.T) {
	for name, in := range map[string][3]string{
		"a tree with changes":   {sum + "  a\n", "v1.2.3-dirty", revision},
		"no version":            {sum + "  a\n", "", revision},
		"no commit":             {sum + "  a\n", "v1.2.3", "unknown"},
		"no file":               {"", "v1.2.3", revision},
		"a file elsewhere":      {sum + "  ../a\n", "v1.2.3", revision},
		"a sum of another kind": {sum[:40] + "  a\n", "v1.2.3", revision},
	} {
		if got, err := provenance(in[0], in[1], in[2], ""); err == nil {
			t.Errorf("%s: %v", name, got)
		}
	}
}
