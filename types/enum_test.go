package types

import (
	"fmt"
	"strings"
	"testing"
)

func TestEnumsHaveTheNumbersAndNamesOfEVE(t *testing.T) {
	for _, tc := range []struct {
		values []fmt.Stringer
		names  string
	}{
		{
			[]fmt.Stringer{
				DrainUnknown, DrainNotSupported, DrainNotRequested, DrainRequested, DrainStarting,
				DrainCordoned, DrainFailedCordon, DrainRetrying, DrainFailedDrain, DrainComplete, DrainStatus(10),
			},
			"0 UNKNOWN 1 NOTSUPPORTED 2 NOTREQUESTED 3 REQUESTED 4 STARTING 5 CORDONED 6 FAILEDCORDON 7 DRAINRETRYING 8 FAILEDDRAIN 9 COMPLETE 10 DrainStatus(10)",
		},
		{
			[]fmt.Stringer{DrainRequesterUnset, DrainRequesterNone, DrainRequesterDeviceOp, DrainRequesterUpdate, DrainRequester(4)},
			"0 UNSET 1 NONE 2 DEVICEOP 3 UPDATE 4 DrainRequester(4)",
		},
		{
			[]fmt.Stringer{AppKubeUnknown, AppKubeAPIUnreachable, AppKubeNotInCluster, AppKubeNotRunning, AppKubeRunning, AppKubeStatus(5)},
			"0 Unknown 1 APIUnreachable 2 NotInCluster 3 NotRunningState 4 RunningState 5 AppKubeStatus(5)",
		},
		{
			[]fmt.Stringer{ConfigGetUnset, ConfigGetSuccess, ConfigGetFail, ConfigGetTemporaryFail, ConfigGetReadSaved, ConfigGetStatus(5)},
			"0 Unset 1 Success 2 Fail 3 TemporaryFail 4 ReadSaved 5 ConfigGetStatus(5)",
		},
		{
			[]fmt.Stringer{KubeNodeUnknown, KubeNodeReady, KubeNodeNotReady, KubeNodeNotReachable},
			"0 Unknown 1 Ready 2 NotReady 3 NotReachable",
		},
		{
			[]fmt.Stringer{
				KubeNodeAdmissionUnspecified, KubeNodeAdmissionNotClustered, KubeNodeAdmissionLeaving,
				KubeNodeAdmissionJoining, KubeNodeAdmissionJoined,
			},
			"0 Unspecified 1 NotClustered 2 Leaving 3 Joining 4 Joined",
		},
		{
			[]fmt.Stringer{KubePodUnknown, KubePodPending, KubePodRunning, KubePodSucceeded, KubePodFailed},
			"0 Unknown 1 Pending 2 Running 3 Succeeded 4 Failed",
		},
		{
			[]fmt.Stringer{
				KubeVMIUnset, KubeVMIPending, KubeVMIScheduling, KubeVMIScheduled,
				KubeVMIRunning, KubeVMISucceeded, KubeVMIFailed, KubeVMIUnknown,
			},
			"0 Unset 1 Pending 2 Scheduling 3 Scheduled 4 Running 5 Succeeded 6 Failed 7 Unknown",
		},
		{
			[]fmt.Stringer{ErrorSeverityUnspecified, ErrorSeverityNotice, ErrorSeverityWarning, ErrorSeverityError, ErrorSeverity(-1)},
			"0 Unspecified 1 Notice 2 Warning 3 Error -1 ErrorSeverity(-1)",
		},
		{
			[]fmt.Stringer{
				VirtualizationPV, VirtualizationHVM, VirtualizationFiller, VirtualizationFML, VirtualizationNoHyper, VirtualizationLegacy,
			},
			"0 PV 1 HVM 2 Filler 3 FML 4 NOHYPER 5 LEGACY",
		},
		{[]fmt.Stringer{AffinityPreferred, AffinityRequired}, "0 Preferred 1 Required"},
		{
			[]fmt.Stringer{ClusterTypeNone, ClusterTypeK3sBase, ClusterTypeReplicatedStorage, ClusterTypeHA},
			"0 None 1 K3sBase 2 ReplicatedStorage 3 HA",
		},
		{
			[]fmt.Stringer{ConfigItemInvalid, ConfigItemInt, ConfigItemBool, ConfigItemString, ConfigItemTriState},
			"0 Invalid 1 Int 2 Bool 3 String 4 TriState",
		},
		{
			[]fmt.Stringer{ServiceStatusUnset, ServiceStatusFailed, ServiceStatusDegraded, ServiceStatusHealthy, ServiceStatus(-1)},
			"0 Unset 1 Failed 2 Degraded 3 Healthy -1 ServiceStatus(-1)",
		},
		{
			[]fmt.Stringer{
				StorageVolumeStateUnknown, StorageVolumeStateCreating, StorageVolumeStateAttached, StorageVolumeStateDetached,
				StorageVolumeStateAttaching, StorageVolumeStateDetaching, StorageVolumeStateDeleting, StorageVolumeState(7),
			},
			"0 Unknown 1 Creating 2 Attached 3 Detached 4 Attaching 5 Detaching 6 Deleting 7 StorageVolumeState(7)",
		},
		{
			[]fmt.Stringer{
				StorageVolumeRobustnessUnknown, StorageVolumeRobustnessHealthy, StorageVolumeRobustnessDegraded, StorageVolumeRobustnessFaulted,
			},
			"0 Unknown 1 Healthy 2 Degraded 3 Faulted",
		},
		{
			[]fmt.Stringer{
				StorageVolumePvcStatusUnknown, StorageVolumePvcStatusBound, StorageVolumePvcStatusPending,
				StorageVolumePvcStatusAvailable, StorageVolumePvcStatusReleased, StorageVolumePvcStatusFaulted,
			},
			"0 Unknown 1 Bound 2 Pending 3 Available 4 Released 5 Faulted",
		},
		{
			[]fmt.Stringer{
				StorageVolumeReplicaStatusUnknown, StorageVolumeReplicaStatusRebuilding, StorageVolumeReplicaStatusOnline,
				StorageVolumeReplicaStatusFailed, StorageVolumeReplicaStatusOffline, StorageVolumeReplicaStatusStarting,
				StorageVolumeReplicaStatusStopping,
			},
			"0 Unknown 1 Rebuilding 2 Online 3 Failed 4 Offline 5 Starting 6 Stopping",
		},
		{
			[]fmt.Stringer{
				StorageHealthStatusUnknown, StorageHealthStatusHealthy,
				StorageHealthStatusDegraded2ReplicaAvailableReplicating, StorageHealthStatusDegraded2ReplicaAvailableNotReplicating,
				StorageHealthStatusDegraded1ReplicaAvailableReplicating, StorageHealthStatusDegraded1ReplicaAvailableNotReplicating,
				StorageHealthStatusFailed,
			},
			"0 Unknown 1 Healthy 2 Degraded2ReplicaAvailableReplicating 3 Degraded2ReplicaAvailableNotReplicating " +
				"4 Degraded1ReplicaAvailableReplicating 5 Degraded1ReplicaAvailableNotReplicating 6 Failed",
		},
		{
			[]fmt.Stringer{
				KubeCompUnknown, KubeCompContainerd, KubeCompK3s, KubeCompMultus, KubeCompKubevirt, KubeCompCdi, KubeCompLonghorn, KubeComp(7),
			},
			"0 unknown 1 containerd 2 k3s 3 multus 4 kubevirt 5 cdi 6 longhorn 7 KubeComp(7)",
		},
		{
			[]fmt.Stringer{
				KubeCompUpdateUnknown, KubeCompUpdateDownload, KubeCompUpdateDownloadFailed,
				KubeCompUpdateInProgress, KubeCompUpdateFailed, KubeCompUpdateCompleted,
			},
			"0 unknown 1 download 2 download_failed 3 in_progress 4 failed 5 completed",
		},
		{
			[]fmt.Stringer{ControllerCertUnset, ControllerCertSigning, ControllerCertIntermediate, ControllerCertECDH},
			"0 Unset 1 Signing 2 Intermediate 3 ECDH",
		},
		{
			[]fmt.Stringer{EdgeNodeCertNone, EdgeNodeCertOnboarding, EdgeNodeCertRestrictSigning, EdgeNodeCertEk, EdgeNodeCertEcdhXchange},
			"0 None 1 Onboarding 2 RestrictSigning 3 Ek 4 EcdhXchange",
		},
		{
			[]fmt.Stringer{HashAlgorithmInvalid, HashAlgorithmSHA256First16, HashAlgorithmSHA256},
			"0 INVALID 1 SHA256_16BYTES 2 SHA256_32BYTES",
		},
		{[]fmt.Stringer{KeyExchangeNone, KeyExchangeECDH}, "0 None 1 ECDH"},
		{[]fmt.Stringer{EncryptionNone, EncryptionAES256CFB}, "0 None 1 AES256CFB"},
		{[]fmt.Stringer{IoType(0), IoNetEth, IoType(2), IoNetEthVF, IoType(255)}, "0 IoType(0) 1 IoNetEth 2 IoType(2) 12 IoNetEthVF 255 IoType(255)"},
	} {
		var got []string
		for _, v := range tc.values {
			got = append(got, fmt.Sprintf("%d %s", v, v))
		}
		if s := strings.Join(got, " "); s != tc.names {
			t.Errorf("got  %s\nwant %s", s, tc.names)
		}
	}
}

func TestTheInlineCommandsWordsAreTheNamesOfTheirEnums(t *testing.T) {
	for c := range KubeCompLonghorn + 1 {
		if got := ParseKubeComp(c.String()); got != c {
			t.Errorf("%q is %d, want %d", c, got, c)
		}
	}
	for s := range KubeCompUpdateCompleted + 1 {
		if got := ParseKubeCompUpdateStatus(s.String()); got != s {
			t.Errorf("%q is %d, want %d", s, got, s)
		}
	}
	for _, word := range []string{"", "K3s", "k3s ", "download-failed", "6", "KubeComp(7)", "kube-vip"} {
		if c, s := ParseKubeComp(word), ParseKubeCompUpdateStatus(word); c != KubeCompUnknown || s != KubeCompUpdateUnknown {
			t.Errorf("%q is %v and %v", word, c, s)
		}
	}
}
