package main

import (
	"fmt"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/zedkube/zedkube/test/player"
	"github.com/zedkube/zedkube/types"
)

// secrets token|certificate: the controller gives the cluster another token, or
// itself another certificate, and every device hears of it.
func secrets(s *story, _ *testscript.TestScript, args []string) error {
	if args[0] == "token" {
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

// hasToken is token NODE...: waits until the nodes publish the token that the cluster has now.
func hasToken(s *story, _ *testscript.TestScript, args []string) error {
	for _, name := range args {
		m, _, err := s.member(name)
		if err != nil {
			return err
		}
		err = eventually(func() string {
			status, _ := m.Watch.ClusterStatus.Get(types.Global)
			switch {
			case status.EncryptedClusterToken != s.fleet.Token():
				return name + " does not publish the cluster's token: " + status.Error.Error
			case status.Error.Error != "":
				return fmt.Sprintf("%s publishes the token and an error: %s", name, status.Error.Error)
			}
			return ""
		})
		if err != nil {
			return err
		}
	}
	return nil
}
