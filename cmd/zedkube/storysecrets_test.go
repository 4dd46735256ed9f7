package main

import (
	"path/filepath"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/zedkube/zedkube/pkg/cli/device"
	"github.com/zedkube/zedkube/test/player"
	"github.com/zedkube/zedkube/types"
)

// secrets token|certificate: the controller gives the cluster another token, or
// itself another certificate, and every device hears of it.
func secrets(s *story, _ *testscript.TestScript, args []string) error {
	if args[0] == "token" {
		s.tokens = append(s.tokens, s.fleet.Token())
		return s.fleet.ChangeToken()
	}
	return s.fleet.RotateControllerCert()
}

// cert NODE withhold|deliver controller|device: one certificate on its way.
func cert(s *story, _ *testscript.TestScript, args []string) error {
	m, _, err := s.member(args[0])
	if err != nil {
		return err
	}
	which := player.OfController
	if args[2] == "device" {
		which = player.OfDevice
	}
	if args[1] == "withhold" {
		return m.Withhold(which)
	}
	return m.Deliver(which)
}

// hasToken is token NODE...: waits until the nodes publish the token that the
// cluster has now. A table may hold what a device said before its boot, so it is
// the file that counts.
func hasToken(s *story, _ *testscript.TestScript, args []string) error {
	for _, name := range args {
		m, _, err := s.member(name)
		if err != nil {
			return err
		}
		err = eventually(func() string {
			status, _, err := device.ReadRecord[types.EdgeNodeClusterStatus](filepath.Join(m.Root, statusFile))
			switch {
			case err != nil:
				return err.Error()
			case status.EncryptedClusterToken != s.fleet.Token():
				return name + " does not publish the cluster's token: " + status.Error.Error
			case status.Error.Error != "":
				return name + " publishes the token and an error: " + status.Error.Error
			}
			return ""
		})
		if err != nil {
			return err
		}
	}
	return nil
}
