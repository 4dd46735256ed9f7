package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"
)

const (
	apache = "Apache License\n   Version 2.0, January 2004"
	mit    = "Permission is hereby granted, free of charge, to any\nperson obtaining a copy"
	bsd    = "Redistribution and use in source and binary forms, with or without"
	three  = bsd + " modification.\nNeither the name may be used to endorse or\n// promote products"
)

func TestALicenceIsKnownByItsWords(t *testing.T) {
	for _, row := range []struct{ name, text, want, fails string }{
		{"Apache's", apache, "Apache-2.0", ""},
		{"MIT's, broken elsewhere", mit, "MIT", ""},
		{"BSD's with two clauses", bsd, "BSD-2-Clause", ""},
		{"BSD's with three, in comments", three, "BSD-3-Clause", ""},
		{"two in one file", apache + "\n" + mit, "Apache-2.0 MIT", ""},
		{"a copyleft", "GNU GENERAL PUBLIC\n LICENSE Version 3", "", "none that the program may contain"},
		{"a copyleft beside another", mit + " Mozilla Public License, version 2.0", "", "mozilla"},
		{"something else", "Do as you like.", "", "not a text"},
		{"nothing", "", "", "not a text"},
	} {
		t.Run(row.name, func(t *testing.T) {
			ids, err := recognise(row.text)
			if got := strings.Join(ids, " "); got != row.want {
				t.Errorf("got %q, want %q", got, row.want)
			}
			if (err == nil) != (row.fails == "") || err != nil && !strings.Contains(err.Error(), row.fails) {
				t.Errorf("error %v, want %q", err, row.fails)
			}
		})
	}
}

func TestAModuleWithoutALicenceIsAnError(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "README.md", mit)
	write(t, dir, "NOTICE", "by somebody")
	if l, err := readLicence(dir); err == nil {
		t.Errorf("got %v", l.ids)
	}
	write(t, dir, "LICENSE.txt", apache)
	write(t, dir, "COPYING", apache)
	l, err := readLicence(dir)
	if err != nil || !slices.Equal(l.ids, []string{"Apache-2.0"}) || len(l.texts) != 3 {
		t.Errorf("got %v, %d texts, %v", l.ids, len(l.texts), err)
	}
	if _, err := readLicence(""); err == nil {
		t.Error("a module that is not there has a licence")
	}
}

func TestTheDocumentHasTheFormOfCycloneDX(t *testing.T) {
	p := program{
		version: "v1.2.3", at: time.Unix(1_700_000_000, 0).UTC(), sum: [32]byte{1},
		info: &debug.BuildInfo{
			GoVersion: "go1.26.8", Path: "github.com/zedkube/zedkube/cmd/zedkube", Main: debug.Module{Path: "github.com/zedkube/zedkube"},
			Deps: []*debug.Module{
				{Path: "example.com/a", Version: "v2.0.0+incompatible", Sum: "h1:abc="},
				{Path: "example.com/b/v3", Version: "v3.1.0", Sum: "h1:def="},
			},
			Settings: []debug.BuildSetting{{Key: "GOARCH", Value: "arm64"}},
		},
	}
	for range p.modules() {
		p.licences = append(p.licences, licence{ids: []string{"MIT"}, texts: [][]byte{[]byte("the text")}})
	}
	d := p.bill()
	valid(t, d)
	if d.Components[1].PURL != "pkg:golang/example.com/a@v2.0.0%2Bincompatible" {
		t.Errorf("purl %s", d.Components[1].PURL)
	}
	if c := d.Metadata.Component; c.Version != "v1.2.3" || c.Type != "application" || c.PURL != "pkg:golang/github.com/zedkube/zedkube@v1.2.3#cmd/zedkube" {
		t.Errorf("component %+v", c)
	}
	if d.Metadata.Timestamp != "2023-11-14T22:13:20Z" {
		t.Errorf("timestamp %s", d.Metadata.Timestamp)
	}
	if n := strings.Count(string(p.notices()), "the text"); n != 1 {
		t.Errorf("the same text %d times", n)
	}
}

// valid checks what the schema of CycloneDX 1.6 asks of the parts that are
// used; the schema itself cannot be had without network.
func valid(t *testing.T, d document) {
	t.Helper()
	if d.BOMFormat != "CycloneDX" || d.SpecVersion != "1.6" || d.Version < 1 {
		t.Errorf("format %s %s %d", d.BOMFormat, d.SpecVersion, d.Version)
	}
	if !regexp.MustCompile(`^urn:uuid:[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`).MatchString(d.SerialNumber) {
		t.Errorf("serial number %s", d.SerialNumber)
	}
	if _, err := time.Parse(time.RFC3339, d.Metadata.Timestamp); err != nil {
		t.Error(err)
	}
	refs := map[string]bool{}
	for _, c := range append([]component{d.Metadata.Component}, d.Components...) {
		if refs[c.Ref] {
			t.Errorf("%s is there twice", c.Ref)
		}
		refs[c.Ref] = true
		if c.Name == "" || c.Version == "" || !slices.Contains([]string{"application", "library"}, c.Type) {
			t.Errorf("component %+v", c)
		}
		if !regexp.MustCompile(`^pkg:golang/[^@ ]+@[^@ +]+$`).MatchString(c.PURL) {
			t.Errorf("purl %s", c.PURL)
		}
		if len(c.Licences) == 0 {
			t.Errorf("%s has no licence", c.Name)
		}
		for _, h := range c.Hashes {
			if h.Algorithm != "SHA-256" || !regexp.MustCompile(`^[0-9a-f]{64}$`).MatchString(h.Content) {
				t.Errorf("hash %+v", h)
			}
		}
	}
	for _, dep := range d.Dependencies {
		if !refs[dep.Ref] {
			t.Errorf("%s depends on something and is not there", dep.Ref)
		}
		seen := map[string]bool{}
		for _, on := range dep.DependsOn {
			if !refs[on] || seen[on] {
				t.Errorf("%s is not there, or twice", on)
			}
			seen[on] = true
		}
	}
}

func TestARealProgramHasTheSameDocumentEachTime(t *testing.T) {
	dir := t.TempDir()
	binary := filepath.Join(dir, "sbom")
	if out, err := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-o", binary, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	t.Setenv("SOURCE_DATE_EPOCH", "1700000000")
	read := func(name string) string {
		doc, notices := filepath.Join(dir, name), filepath.Join(dir, name+".txt")
		if err := run(binary, doc, "v1.0.0", notices); err != nil {
			t.Fatal(err)
		}
		a, err1 := os.ReadFile(doc)
		b, err2 := os.ReadFile(notices)
		if err1 != nil || err2 != nil {
			t.Fatal(err1, err2)
		}
		return string(a) + string(b)
	}
	first := read("first")
	if first != read("second") {
		t.Error("two documents of one program differ")
	}
	var d document
	if err := json.NewDecoder(strings.NewReader(first)).Decode(&d); err != nil {
		t.Fatal(err)
	}
	valid(t, d)
	got := map[string]string{}
	for _, c := range d.Components {
		got[c.Name] = c.Licences[0].Licence.ID
	}
	if len(got) != 2 || got["stdlib"] != "BSD-3-Clause" || got["github.com/google/uuid"] != "BSD-3-Clause" {
		t.Errorf("components %v", got)
	}
	if !strings.Contains(first, "github.com/google/uuid v1") || strings.Contains(first, dir) {
		t.Error("the licences name no module, or this directory")
	}
}

func TestWhatIsNoGoProgramIsRefused(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "file", "#!/bin/sh\n")
	for _, name := range []string{"file", "nothing"} {
		if err := run(filepath.Join(dir, name), filepath.Join(dir, "doc"), "v1", ""); err == nil {
			t.Errorf("%s has a document", name)
		}
	}
	t.Setenv("SOURCE_DATE_EPOCH", "yesterday")
	if _, err := sourceTime(os.Getenv("SOURCE_DATE_EPOCH")); err == nil {
		t.Error("a time that is none")
	}
}

func write(t *testing.T, dir, name, content string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}
