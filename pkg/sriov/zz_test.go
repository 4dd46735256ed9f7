package sriov

import "testing"

func TestZZ(t *testing.T) { play(t, 29, 40) }
