package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/rogpeppe/go-internal/testscript"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/zedkube/zedkube/test/devcluster"
	"github.com/zedkube/zedkube/test/eveapi"
	"github.com/zedkube/zedkube/test/player"
	"github.com/zedkube/zedkube/types"
)

// appConfig is an application as the controller configures it, by its name.
func appConfig(name string) types.AppInstanceConfig {
	return types.AppInstanceConfig{
		UUIDandVersion: types.UUIDandVersion{UUID: uuid.NewSHA1(uuid.NameSpaceOID, []byte(name)), Version: "1"},
		DisplayName:    name,
		FixedResources: types.VMConfig{VirtualizationMode: types.VirtualizationNoHyper},
		Activate:       true,
	}
}

// app NAME NODE [REPLICAS]: an application, designated to a node, on devices
// and in the cluster. Its UUID is in the script's variable of that name, its name
// in the cluster in NAME_kube. app NAME none: it is taken away, on devices and in
// the cluster.
func app(s *story, ts *testscript.TestScript, args []string) error {
	config, replicas := appConfig(args[0]), 1
	if len(args) > 2 {
		var err error
		if replicas, err = strconv.Atoi(args[2]); err != nil {
			return err
		}
	}
	if args[1] == "none" {
		for _, m := range s.fleet.Members {
			if err := m.Send(func(d *eveapi.Document) error { d.Message.Apps = nil; return nil }); err != nil {
				return err
			}
		}
		_, err := s.fleet.Cluster.Kubectl(s.ctx, "-n", devcluster.AppNamespace, "delete", "replicasets", config.KubeName())
		return err
	}
	ts.Setenv(args[0], config.UUIDandVersion.UUID.String())
	ts.Setenv(args[0]+"_kube", config.KubeName())
	for _, m := range s.fleet.Members {
		config.IsDesignatedNodeID = m.Name == args[1]
		if err := m.ConfigureApp(config); err != nil {
			return err
		}
	}
	err := s.fleet.Cluster.CreateApp(s.ctx, devcluster.App{
		Name: config.KubeName(), Domain: config.UUIDandVersion.UUID.String() + ".1.1", Node: args[1], Replicas: int32(replicas),
	})
	if err != nil {
		return err
	}
	_, err = s.fleet.Cluster.WaitRunning(s.ctx, "app="+config.KubeName(), replicas)
	return err
}

// pods NODE N: waits until N application pods that are not terminating are on
// the node.
func pods(s *story, _ *testscript.TestScript, args []string) error {
	return eventually(func() string {
		list, err := s.fleet.Cluster.Client().CoreV1().Pods(devcluster.AppNamespace).List(s.ctx, metav1.ListOptions{FieldSelector: "spec.nodeName=" + args[0]})
		if err != nil {
			return err.Error()
		}
		n := 0
		for _, p := range list.Items {
			if p.DeletionTimestamp == nil {
				n++
			}
		}
		if strconv.Itoa(n) != args[1] {
			return fmt.Sprintf("%d application pods on %s", n, args[0])
		}
		return ""
	})
}

// budget NAME N: at least N pods of the application must stay.
func budget(s *story, _ *testscript.TestScript, args []string) error {
	n, err := strconv.Atoi(args[1])
	if err != nil {
		return err
	}
	return s.fleet.Cluster.SetBudget(s.ctx, appConfig(args[0]).KubeName(), n)
}

// fault NODE FAULT: what the node meets at the API server, none, refused, hung
// or another devcluster.Fault.
func fault(s *story, _ *testscript.TestScript, args []string) error {
	_, i, err := s.member(args[0])
	if err != nil {
		return err
	}
	f, err := devcluster.ParseFault(args[1])
	if err != nil {
		return err
	}
	return s.fleet.Cluster.SetNodeFault(i, f)
}

// forbid VERB RESOURCE: zedkube may not do that any more, on no node.
func forbid(s *story, _ *testscript.TestScript, args []string) error {
	return s.fleet.Cluster.Forbid(s.ctx, args[0], args[1])
}

// permit: zedkube may do again what deploy/rbac.yaml says.
func permit(s *story, _ *testscript.TestScript, _ []string) error {
	return s.fleet.Cluster.Permit(s.ctx)
}

// reboot NODE: the controller's reboot command, once the device has heard that nothing drains: before
// that it would be carried out at once.
func reboot(s *story, _ *testscript.TestScript, args []string) error {
	m, _, err := s.member(args[0])
	if err != nil {
		return err
	}
	if err := eventually(func() string {
		if is := m.HearsDrain().Status; is != types.DrainNotRequested {
			return args[0] + " has heard of a drain that it is " + is.String()
		}
		return ""
	}); err != nil {
		return err
	}
	m.CommandReboot()
	return nil
}

// requesters are the names of who asks for drains.
var requesters = map[string]types.DrainRequester{
	"zedagent": types.DrainRequesterDeviceOp, "baseosmgr": types.DrainRequesterUpdate,
}

// request NODE zedagent|baseosmgr: a drain without a reboot after it.
func request(s *story, _ *testscript.TestScript, args []string) error {
	m, _, err := s.member(args[0])
	if err != nil {
		return err
	}
	return m.RequestDrain(types.NodeDrainRequest{RequestedAt: time.Now(), RequestedBy: requesters[args[1]], Context: "story"})
}

// withdraw NODE zedagent|baseosmgr: the request is taken back.
func withdraw(s *story, _ *testscript.TestScript, args []string) error {
	m, _, err := s.member(args[0])
	if err != nil {
		return err
	}
	return m.WithdrawDrain(requesters[args[1]])
}

// sigkill NODE: SIGKILL for the node's zedkube.
func sigkill(s *story, _ *testscript.TestScript, args []string) error {
	m, _, err := s.member(args[0])
	if err != nil {
		return err
	}
	m.KillProgram()
	return nil
}

// sigterm NODE: SIGTERM for the node's zedkube, which ends in good time.
func sigterm(s *story, _ *testscript.TestScript, args []string) error {
	m, _, err := s.member(args[0])
	if err != nil {
		return err
	}
	began := time.Now()
	m.StopProgram()
	if took := time.Since(began); took > 8*time.Second {
		return fmt.Errorf("zedkube ended %s after SIGTERM", took)
	}
	return nil
}

// start NODE: the node's zedkube again.
func start(s *story, _ *testscript.TestScript, args []string) error {
	m, _, err := s.member(args[0])
	if err != nil {
		return err
	}
	return m.StartProgram()
}

// lead VARIABLE [OTHERS]: waits until exactly one node reports and puts its
// name in the script's variable; those of the others in OTHERS1, OTHERS2, ...
func lead(s *story, ts *testscript.TestScript, args []string) error {
	return eventually(func() string {
		m := s.fleet.Reporter()
		if m == nil {
			return "no node leads, or several"
		}
		ts.Setenv(args[0], m.Name)
		others := 0
		for _, other := range s.fleet.Members {
			if other != m && len(args) > 1 {
				others++
				ts.Setenv(args[1]+strconv.Itoa(others), other.Name)
			}
		}
		return ""
	})
}

// setLevel is loglevel NODE LEVEL: the controller sets the level of a running agent.
func setLevel(s *story, _ *testscript.TestScript, args []string) error {
	m, _, err := s.member(args[0])
	if err != nil {
		return err
	}
	items := player.ShortWindow()
	items[types.SettingDefaultLogLevel] = types.ConfigItemValue{Key: types.SettingDefaultLogLevel, ItemType: types.ConfigItemString, StrValue: args[1]}
	return m.ConfigureSettings(types.ConfigItemValueMap{GlobalSettings: items})
}

// logged NODE TEXT: waits until the node's log contains the text.
func logged(s *story, _ *testscript.TestScript, args []string) error {
	m, _, err := s.member(args[0])
	if err != nil {
		return err
	}
	return eventually(func() string {
		content, err := os.ReadFile(filepath.Join(m.Root, "zedkube.log"))
		if err != nil {
			return err.Error()
		}
		if !strings.Contains(string(content), args[1]) {
			return "not logged: " + args[1]
		}
		return ""
	})
}

// kubectl ARGS...: as the administrator; its output is printed.
func kubectl(s *story, ts *testscript.TestScript, args []string) error {
	out, err := s.fleet.Cluster.Kubectl(s.ctx, args...)
	ts.Logf("%s", out)
	return err
}

// pause SECONDS: lets time pass in which nothing may happen.
func pause(_ *story, _ *testscript.TestScript, args []string) error {
	d, err := time.ParseDuration(args[0])
	time.Sleep(d)
	return err
}

// fresh NODE FILE DURATION: the file's time of modification is no older.
func fresh(s *story, _ *testscript.TestScript, args []string) error {
	m, _, err := s.member(args[0])
	if err != nil {
		return err
	}
	limit, err := time.ParseDuration(args[2])
	if err != nil {
		return err
	}
	info, err := os.Stat(m.Root + args[1])
	if err != nil {
		return err
	}
	if age := time.Since(info.ModTime()); age > limit {
		return fmt.Errorf("%s is %s old", args[1], age)
	}
	return nil
}
