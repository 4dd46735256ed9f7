package passthrough

import (
	"context"
	"errors"
	"fmt"
	"net"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// Raised is what came of setting a link up.
type Raised int

// What may come of it.
const (
	Absent Raised = iota // the host has no interface of that name
	WasUp                // nothing was to be done
	SetUp                // it was down
)

// Host is the network interfaces of the host. It implements Links.
type Host struct{}

// Raise implements Links.
func (Host) Raise(name string) (Raised, error) {
	link, err := netlink.LinkByName(name)
	var none netlink.LinkNotFoundError
	switch {
	case errors.As(err, &none):
		return Absent, nil
	case err != nil:
		return Absent, fmt.Errorf("find interface %s: %w", name, err)
	case link.Attrs().Flags&net.FlagUp != 0:
		return WasUp, nil
	}
	if err := netlink.LinkSetUp(link); err != nil {
		return Absent, fmt.Errorf("set interface %s up: %w", name, err)
	}
	return SetUp, nil
}

// Follow implements Links. Of links that are up there is no news: some tell of
// themselves every second. The kernel sets down what it takes away.
func (Host) Follow(ctx context.Context, news func()) error {
	done := make(chan struct{})
	var failure error // written before updates is closed
	updates := make(chan netlink.LinkUpdate, 64)
	err := netlink.LinkSubscribeWithOptions(updates, done, netlink.LinkSubscribeOptions{
		ErrorCallback: func(err error) { failure = err },
	})
	if err != nil {
		close(done)
		return fmt.Errorf("subscribe to network interfaces: %w", err)
	}
	defer func() { // the subscription ends when nobody keeps it from telling
		close(done)
		for range updates {
		}
	}()
	news()
	for {
		select {
		case <-ctx.Done():
			return nil
		case update, ok := <-updates:
			if !ok {
				return fmt.Errorf("follow network interfaces: %w", failure)
			}
			if update.Flags&unix.IFF_UP == 0 {
				news()
			}
		}
	}
}
