package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/url"
	"path"
	"runtime/debug"
	"strings"
	"time"

	"github.com/google/uuid"
)

// std is Go's own library, as a module.
const std = "stdlib"

// program is what the document is about.
type program struct {
	info     *debug.BuildInfo
	sum      [sha256.Size]byte
	version  string
	at       time.Time
	licences []licence // of modules(), in its order
}

// modules are the program's own and every one that is linked into it.
func (p program) modules() []*debug.Module {
	own := &debug.Module{Path: p.info.Main.Path, Version: p.version}
	return append([]*debug.Module{own, {Path: std, Version: p.info.GoVersion}}, p.info.Deps...)
}

// The parts of a CycloneDX document, version 1.6, that are used here.
type (
	document struct {
		Schema       string       `json:"$schema"`
		BOMFormat    string       `json:"bomFormat"`
		SpecVersion  string       `json:"specVersion"`
		SerialNumber string       `json:"serialNumber"`
		Version      int          `json:"version"`
		Metadata     metadata     `json:"metadata"`
		Components   []component  `json:"components"`
		Dependencies []dependency `json:"dependencies"`
	}
	metadata struct {
		Timestamp string    `json:"timestamp"`
		Component component `json:"component"`
	}
	component struct {
		Type       string        `json:"type"`
		Ref        string        `json:"bom-ref"`
		Name       string        `json:"name"`
		Version    string        `json:"version"`
		Hashes     []hash        `json:"hashes,omitempty"`
		Licences   []licenceItem `json:"licenses"`
		PURL       string        `json:"purl"`
		Properties []property    `json:"properties,omitempty"`
	}
	hash struct {
		Algorithm string `json:"alg"`
		Content   string `json:"content"`
	}
	licenceItem struct {
		Licence licenceID `json:"license"`
	}
	licenceID struct {
		ID string `json:"id"`
	}
	property struct {
		Name  string `json:"name"`
		Value string `json:"value"`
	}
	dependency struct {
		Ref       string   `json:"ref"`
		DependsOn []string `json:"dependsOn,omitempty"`
	}
)

// bill is the document.
func (p program) bill() document {
	var all []component
	var refs []string
	for i, m := range p.modules() {
		c := component{Type: "library", Name: m.Path, Version: m.Version, PURL: purl(m)}
		if m.Sum != "" { // a hash of the module's files, as go.sum has it
			c.Properties = []property{{"go:sum", m.Sum}}
		}
		for _, id := range p.licences[i].ids {
			c.Licences = append(c.Licences, licenceItem{licenceID{id}})
		}
		c.Ref = c.PURL
		all = append(all, c)
		refs = append(refs, c.Ref)
	}
	own := all[0]
	own.Type, own.Name = "application", p.info.Path
	if within := strings.TrimPrefix(p.info.Path, p.info.Main.Path+"/"); within != p.info.Path { // one module has several programs
		own.PURL += "#" + within
		own.Ref = own.PURL
	}
	own.Hashes = []hash{{"SHA-256", hex.EncodeToString(p.sum[:])}}
	for _, s := range p.info.Settings {
		own.Properties = append(own.Properties, property{"go:build:" + s.Key, s.Value})
	}
	return document{
		Schema:       "http://cyclonedx.org/schema/bom-1.6.schema.json",
		BOMFormat:    "CycloneDX",
		SpecVersion:  "1.6",
		SerialNumber: "urn:uuid:" + uuid.NewHash(sha256.New(), uuid.Nil, p.sum[:], 8).String(),
		Version:      1,
		Metadata:     metadata{Timestamp: p.at.Format(time.RFC3339), Component: own},
		Components:   all[1:],
		Dependencies: []dependency{{Ref: own.Ref, DependsOn: refs[1:]}},
	}
}

// purl is a module's package URL: https://github.com/package-url/purl-spec, type golang.
func purl(m *debug.Module) string {
	var parts []string
	for part := range strings.SplitSeq(m.Path, "/") {
		parts = append(parts, url.PathEscape(part))
	}
	return "pkg:golang/" + strings.Join(parts, "/") + "@" + url.QueryEscape(m.Version)
}

// notices are the texts that have to be passed on with the program: each once, below the modules that it is for.
func (p program) notices() []byte {
	var texts []string
	whose := map[string][]string{}
	for i, m := range p.modules() {
		for _, text := range p.licences[i].texts {
			text := strings.TrimSpace(string(text))
			if whose[text] == nil {
				texts = append(texts, text)
			}
			whose[text] = append(whose[text], m.Path+" "+m.Version)
		}
	}
	var out bytes.Buffer
	fmt.Fprintf(&out, "%s %s contains the following, each under the terms below it.\n", path.Base(p.info.Path), p.version)
	for _, text := range texts {
		fmt.Fprintf(&out, "\n%s\n%s\n\n%s\n", strings.Repeat("=", 80), strings.Join(whose[text], "\n"), text)
	}
	return out.Bytes()
}
