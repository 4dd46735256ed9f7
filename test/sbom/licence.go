package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// licence is under what a module may be passed on.
type licence struct {
	ids   []string // of SPDX
	texts [][]byte // of the files that say so, and of NOTICE
}

// legal are the names of files that hold a licence; NOTICE is what Apache's asks to pass on.
var (
	legal  = regexp.MustCompile(`(?i)^(licen[sc]e|copying)([.-].*)?$`)
	notice = regexp.MustCompile(`(?i)^notice(\..*)?$`)
)

// known are the licences that the program may contain, by words that no other of them has, the narrower first.
var known = []struct {
	id    string
	words []string
}{
	{"Apache-2.0", []string{"apache license", "version 2.0"}},
	{"MIT", []string{"permission is hereby granted, free of charge, to any person obtaining a copy"}},
	{"ISC", []string{"permission to use, copy, modify, and", "distribute this software for any purpose with or without fee is hereby granted"}},
	{"BSD-3-Clause", []string{"redistribution and use in source and binary forms", "endorse or promote products"}},
	{"BSD-2-Clause", []string{"redistribution and use in source and binary forms"}},
}

// foreign are words of licences that must not come in beside one of those.
var foreign = regexp.MustCompile(`gnu (affero |lesser |library )?general public license version|mozilla public license,? version|server side public license|business source license`)

// spaces stand for one, since texts are broken at other places.
var spaces = regexp.MustCompile(`[\s/*#]+`)

// readLicence reads the licence of the module whose source lies in dir.
func readLicence(dir string) (licence, error) {
	var l licence
	if dir == "" {
		return l, errors.New("its source is not in the module cache: go mod download")
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return l, err
	}
	for _, e := range entries {
		isLegal := legal.MatchString(e.Name())
		if e.IsDir() || !isLegal && !notice.MatchString(e.Name()) {
			continue
		}
		text, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			return l, err
		}
		l.texts = append(l.texts, text)
		if !isLegal {
			continue
		}
		ids, err := recognise(string(text))
		if err != nil {
			return l, fmt.Errorf("%s: %w", e.Name(), err)
		}
		l.ids = append(l.ids, ids...)
	}
	if len(l.ids) == 0 {
		return l, errors.New("no file says which")
	}
	slices.Sort(l.ids)
	l.ids = slices.Compact(l.ids)
	return l, nil
}

// recognise says which licences a text is.
func recognise(text string) ([]string, error) {
	text = strings.ToLower(spaces.ReplaceAllString(text, " "))
	if found := foreign.FindString(text); found != "" {
		return nil, fmt.Errorf("%q is none that the program may contain", found)
	}
	var ids []string
	for _, k := range known {
		has := !slices.ContainsFunc(k.words, func(words string) bool { return !strings.Contains(text, words) })
		if has && !(k.id == "BSD-2-Clause" && slices.Contains(ids, "BSD-3-Clause")) {
			ids = append(ids, k.id)
		}
	}
	if len(ids) == 0 {
		return nil, errors.New("not a text that is known here")
	}
	return ids, nil
}
