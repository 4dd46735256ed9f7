package main

import (
	"encoding/base64"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/zedkube/zedkube/types"
)

// setting NODE KEY=TEXT...: the settings of one device are these and no others;
// @FILE is the content of the script's file in base64.
func setting(s *story, ts *testscript.TestScript, args []string) error {
	m, _, err := s.member(args[0])
	if err != nil {
		return err
	}
	items := map[string]types.ConfigItemValue{}
	for _, arg := range args[1:] {
		key, text, _ := strings.Cut(arg, "=")
		if file, is := strings.CutPrefix(text, "@"); is {
			text = base64.StdEncoding.EncodeToString([]byte(ts.ReadFile(file)))
		}
		items[key] = types.ConfigItemValue{Key: key, ItemType: types.ConfigItemString, StrValue: text}
	}
	return m.ConfigureSettings(types.ConfigItemValueMap{GlobalSettings: items})
}

// fileIs is file NODE PATH FILE|none: waits until the device's file is for its
// owner alone and has the content of the script's, or until there is none.
func fileIs(s *story, ts *testscript.TestScript, args []string) error {
	m, _, err := s.member(args[0])
	if err != nil {
		return err
	}
	want := ""
	if args[2] != "none" {
		want = ts.ReadFile(args[2])
	}
	path := filepath.Join(m.Root, args[1])
	return eventually(func() string {
		got, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) && args[2] == "none" {
			return ""
		}
		if err != nil {
			return err.Error()
		}
		info, err := os.Stat(path)
		switch {
		case err != nil:
			return err.Error()
		case args[2] == "none":
			return args[1] + " is there"
		case info.Mode() != 0o600:
			return args[1] + " has mode " + info.Mode().String()
		}
		return differs(args[1], string(got), want)
	})
}
