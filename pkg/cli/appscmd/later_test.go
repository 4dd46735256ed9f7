package appscmd

import (
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/zedkube/zedkube/pkg/cli/device"
	"github.com/zedkube/zedkube/types"
)

// The agent ends before it answers the request or its withdrawal; the next one takes the request of
// a later command, before the earlier command asks again.
func TestVMIDetachThatAsksAgainLeavesTheRequestOfALaterCommand(t *testing.T) {
	t.Parallel()
	for _, lost := range []string{http.MethodPut, http.MethodDelete} {
		t.Run(lost, func(t *testing.T) {
			t.Parallel()
			s := detachWith(t)
			later := uuid.New()
			var asked atomic.Int32
			s.agent(func(w http.ResponseWriter, r *http.Request, carryOut func()) {
				if r.Method == lost && asked.Add(1) == 1 {
					s.lay(`{"ID":"` + later.String() + `","Node":"n4","Asked":"` + time.Now().UTC().Format(time.RFC3339) + `"}`)
					panic(http.ErrAbortHandler)
				}
				carryOut()
				w.WriteHeader(http.StatusNoContent)
			})
			code, err := s.run(t.Context(), "--timeout", "1500ms", "n3", detachDomain)
			lies, _, lack := device.ReadRecord[types.AppDetachRequest](s.file())
			if lack != nil || lies.ID != later {
				t.Errorf("exit code %d, %v; asked %d times; of the later command there lies %+v, %v", code, err, asked.Load(), lies, lack)
			}
		})
	}
}
