package kubeapi

import (
	"context"
	"errors"
	"fmt"
	"time"

	longhornv1 "github.com/longhorn/longhorn-manager/k8s/pkg/apis/longhorn/v1beta2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/zedkube/zedkube/types"
)

const (
	longhornNamespace  = "longhorn-system"
	drainPolicySetting = "node-drain-policy"
	// storagePage is how many objects are asked for and decoded at a time, of
	// which little is kept: an Engine carries all its snapshots.
	storagePage = 250
)

// Storage returns, from fresh and whole lists, the volumes of Longhorn with
// their replicas and engines, its drain policy where there are any, and the
// VolumeAttachments of node that are attached. Longhorn is not installed where
// its namespace or its kinds do not exist; whatever else keeps a list from being
// whole is an error. Volumes and their replicas are sorted by name.
func (c *Client) Storage(ctx context.Context, node string) (types.Storage, error) {
	var s types.Storage
	err := c.verb(ctx, func(ctx context.Context, conn *connection) error {
		var err error
		s, err = storageOf(ctx, conn, node)
		return err
	})
	if err != nil {
		return types.Storage{}, fmt.Errorf("list volumes: %w", err)
	}
	return s, nil
}

func storageOf(ctx context.Context, conn *connection, node string) (types.Storage, error) {
	var s types.Storage
	var err error
	if s.Attachments, err = attachmentsOf(ctx, conn, node, true); err != nil {
		return s, err
	}
	if installed, err := hasLonghorn(ctx, conn); err != nil || !installed {
		return s, err
	}
	disks, err := listDisks(ctx, conn)
	if apierrors.IsNotFound(err) {
		// Anybody may answer 404; that the kinds are unknown, the server has to say.
		if err := conn.denies(ctx, longhornv1.SchemeGroupVersion.Group); err != nil {
			return s, fmt.Errorf("volumes of Longhorn: %w", err)
		}
		return s, nil
	}
	if err != nil {
		return s, err
	}
	s.Longhorn = true
	if len(disks) == 0 {
		return s, nil
	}
	if s.Policy, err = drainPolicy(ctx, conn); err != nil {
		return s, err
	}
	if s.Volumes, err = disks.volumes(); err != nil {
		return s, err
	}
	return s, markDaemons(ctx, conn, node, &s)
}

// hasLonghorn asks until it is there. That it is taken away is seen by its lists.
func hasLonghorn(ctx context.Context, conn *connection) (bool, error) {
	if kept[longhornClients](conn).installed.Load() {
		return true, nil
	}
	ns, err := conn.kube.CoreV1().Namespaces().Get(ctx, longhornNamespace, metav1.GetOptions{})
	switch {
	case absent(err):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("look for namespace %s: %w", longhornNamespace, err)
	case ns.Name != longhornNamespace:
		return false, fmt.Errorf("look for namespace %s: the answer is not this namespace", longhornNamespace)
	}
	kept[longhornClients](conn).installed.Store(true)
	return true, nil
}

// drainPolicy is "" where Longhorn has no such setting.
func drainPolicy(ctx context.Context, conn *connection) (string, error) {
	setting, err := conn.longhorn.Settings(longhornNamespace).Get(ctx, drainPolicySetting, metav1.GetOptions{})
	switch {
	case absent(err):
		return "", nil
	case err != nil:
		return "", fmt.Errorf("read setting %s: %w", drainPolicySetting, err)
	case setting.Name != drainPolicySetting:
		return "", fmt.Errorf("read setting %s: the answer is not this setting", drainPolicySetting)
	}
	return setting.Value, nil
}

func longhornTime(text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	return time.Parse(time.RFC3339, text)
}

// pages gives each every page of one list, and returns an error unless it was
// whole, and all of one version.
func pages[L metav1.ListInterface](ctx context.Context, list func(context.Context, metav1.ListOptions) (L, error), each func(L) error) error {
	o := metav1.ListOptions{Limit: storagePage}
	version := ""
	for {
		page, err := list(ctx, o)
		if err != nil {
			return err
		}
		more, left := page.GetContinue(), page.GetRemainingItemCount()
		switch {
		case page.GetResourceVersion() == "": // an answer of another kind is decoded to an empty list
			return errNoVersion
		case version != "" && page.GetResourceVersion() != version:
			return errors.New("the pages are of different versions")
		case more == "" && left != nil && *left > 0:
			return fmt.Errorf("the list ends %d objects early", *left)
		case more != "" && more == o.Continue:
			return errors.New("the list does not go on")
		}
		if err := each(page); err != nil || more == "" {
			return err
		}
		version, o.Continue = page.GetResourceVersion(), more
	}
}
