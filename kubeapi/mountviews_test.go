package kubeapi

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/zedkube/zedkube/test/kubetest"
	"github.com/zedkube/zedkube/types"
)

func TestVolumesOfTheOwnNodeAreWatchedWhileTheyAreWanted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, tb := newTestClient(t)
		_ = tb.attachments.Publish("old", types.Attachment{Name: "old"}) // as an earlier connection left it
		api := withLonghorn()
		api.storage["volumeattachments"] = []any{volumeAttachment("v", "n1", true), volumeAttachment("w", "n1", false), volumeAttachment("x", "n2", true)}
		api.storage["volumes"] = []any{lhVolume("pv-v", "attached", "n1"), lhVolume("pv-w", "attached", "n2"), lhVolume("pv-x", "detached", "")}
		end := startInMemory(t, c, &kubetest.InMemory{Handler: api})
		defer end()
		none := func() {
			t.Helper()
			time.Sleep(time.Second)
			_, a := tb.tables.Get(types.TableOwnAttachments)
			_, v := tb.tables.Get(types.TableOwnVolumes)
			if rows := len(tb.attachments.All()) + len(tb.ownVolumes.All()); a || v || rows > 0 {
				t.Errorf("they are watched, and have %d rows", rows)
			}
		}
		none()
		before := api.count()
		time.Sleep(time.Minute)
		idle := api.count() - before
		_ = tb.mounts.Publish(types.Global, types.MountRecovery{Watch: true})
		time.Sleep(time.Second)
		if diff := cmp.Diff(map[string]types.Attachment{"v": {Name: "v", UID: "uid-v", Node: "n1", Volume: "pv-v"}}, tb.attachments.All()); diff != "" {
			t.Errorf("attachments: %s", diff)
		}
		if v, _ := tb.ownVolumes.Get("pv-v"); len(tb.ownVolumes.All()) != 1 || v.State != "attached" || v.Robustness != "healthy" || v.Claim != "eve-kube-app/pv-v-pvc-0" {
			t.Errorf("volumes: %+v", tb.ownVolumes.All())
		}
		if !tb.stands(t, types.TableOwnAttachments).Complete || !tb.stands(t, types.TableOwnVolumes).Complete {
			t.Error("they are not complete")
		}
		before = api.count()
		_ = tb.mounts.Publish(types.Global, types.MountRecovery{Watch: true, Reason: "r"}) // no news for them
		time.Sleep(time.Minute)
		if n := api.count() - before; n > idle {
			t.Errorf("%d requests in a minute, %d while nothing was watched", n, idle)
		}
		_ = tb.mounts.Publish(types.Global, types.MountRecovery{})
		none()
	})
}
