package player

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"

	"github.com/google/uuid"

	"github.com/zedkube/zedkube/test/eveapi"
	"github.com/zedkube/zedkube/types"
)

// documentFile holds what the controller sends the device: an EdgeDevConfig in
// protobuf JSON. Zedagent follows the file, so that it may be edited.
const documentFile = "/config/edgedevconfig.json"

// DocumentPath is where the device's EdgeDevConfig is.
func (d *Device) DocumentPath() string { return filepath.Join(d.Root, documentFile) }

// Document is the EdgeDevConfig as it is now.
func (d *Device) Document() (eveapi.Document, error) {
	data, err := os.ReadFile(d.DocumentPath())
	if errors.Is(err, fs.ErrNotExist) {
		document := eveapi.New(d.Info.DeviceID)
		document.Message.DeviceName = d.Info.DeviceName
		return document, nil
	}
	if err != nil {
		return eveapi.Document{}, err
	}
	return eveapi.ParseJSON(data)
}

// Send changes the EdgeDevConfig. Zedagent hears of it at once when the device
// is on, else at its next boot.
func (d *Device) Send(change func(*eveapi.Document) error) error {
	d.sending.Lock()
	defer d.sending.Unlock()
	document, err := d.Document()
	if err != nil {
		return err
	}
	if err := change(&document); err != nil {
		return err
	}
	data, err := document.JSON()
	if err != nil {
		return err
	}
	if err := d.writeFile(documentFile, data); err != nil {
		return err
	}
	return d.fetch()
}

// ClusterConfig is what zedagent makes of the cluster section now.
func (d *Device) ClusterConfig() (types.EdgeNodeClusterConfig, error) {
	document, err := d.Document()
	if err != nil {
		return types.EdgeNodeClusterConfig{}, err
	}
	c, err := document.For(d.Info.DeviceID)
	return c.Cluster, err
}

// ChangeCluster changes the cluster section: the masters, the tie-breaker, the
// cluster address, the join server, ... A section that change makes invalid is
// taken out.
func (d *Device) ChangeCluster(change func(*types.EdgeNodeClusterConfig)) error {
	return d.Send(func(document *eveapi.Document) error {
		c, err := document.For(d.Info.DeviceID)
		if err = errors.Join(err, c.ClusterFault); err != nil {
			return err
		}
		change(&c.Cluster)
		document.Message.CipherContexts = nil // the one of the token is the only one
		document.SetCluster(c.Cluster)
		return nil
	})
}

// ConfigureSettings sends settings, in place of all others.
func (d *Device) ConfigureSettings(settings types.ConfigItemValueMap) error {
	return d.Send(func(document *eveapi.Document) error { return document.SetSettings(settings) })
}

// ConfigureApp sends an application. Where this device is not its designated
// node, the first other master is.
func (d *Device) ConfigureApp(app types.AppInstanceConfig) error {
	return d.Send(func(document *eveapi.Document) error {
		designated := d.Info.DeviceID
		if !app.IsDesignatedNodeID {
			designated = elsewhere(document.Beside.MasterNodeUUIDs, designated)
		}
		document.SetApp(app, designated)
		return nil
	})
}

// elsewhere is the first of masters that is not device; a node that there is
// not where there is no other.
func elsewhere(masters []string, device uuid.UUID) uuid.UUID {
	for _, m := range masters {
		if id, err := uuid.Parse(m); err == nil && id != device {
			return id
		}
	}
	return uuid.Nil
}

// look fetches the EdgeDevConfig, in case somebody has edited it, and says what
// is wrong with it.
func (d *Device) look() error {
	d.sending.Lock()
	defer d.sending.Unlock()
	return errors.Join(d.fetch(), d.configuration.ClusterFault)
}

// fetch publishes what has changed in the EdgeDevConfig since the last time,
// and nothing of one that cannot be read. Sending is held.
func (d *Device) fetch() error {
	if d.clusterConfig == nil {
		return nil // the device is off
	}
	data, err := os.ReadFile(d.DocumentPath())
	if err != nil || bytes.Equal(data, d.fetched) {
		return err
	}
	document, err := eveapi.ParseJSON(data)
	if err != nil {
		return err
	}
	now, err := document.For(d.Info.DeviceID)
	if err != nil {
		return err
	}
	first, was := d.fetched == nil, d.configuration
	d.fetched, d.configuration = data, now
	errs := []error{d.publishApps(was.Apps, now.Apps)}
	if first || !reflect.DeepEqual(was.Settings, now.Settings) {
		errs = append(errs, d.settings.Publish(types.Global, now.Settings))
	}
	if first || !reflect.DeepEqual(was.Cluster, now.Cluster) {
		errs = append(errs, d.clusterConfig.Publish(types.Global, now.Cluster))
	}
	if first {
		errs = append(errs, d.agent.Publish("zedagent", types.ZedAgentStatus{ConfigGetStatus: types.ConfigGetSuccess}))
	}
	return errors.Join(errs...)
}

func (d *Device) publishApps(was, now []types.AppInstanceConfig) error {
	var errs []error
	gone := map[string]bool{}
	for _, app := range was {
		gone[app.UUIDandVersion.UUID.String()] = true
	}
	for _, app := range now {
		delete(gone, app.UUIDandVersion.UUID.String())
		errs = append(errs, d.apps.Publish(app.UUIDandVersion.UUID.String(), app))
	}
	for key := range gone {
		errs = append(errs, d.apps.Unpublish(key))
	}
	return errors.Join(errs...)
}

// template is the EdgeDevConfig of member i before anybody changes it.
func (f *Fleet) template(i int, apps [][]types.AppInstanceConfig) (eveapi.Document, error) {
	m := f.Members[i]
	document, err := m.Document()
	if err != nil {
		return document, err
	}
	c := f.config(i)
	if c.CipherToken, err = f.controller.sealFor(m.pair); err != nil {
		return document, fmt.Errorf("encrypt the secrets of %s: %w", m.Name, err)
	}
	document.SetCluster(c)
	for _, app := range apps[i] {
		document.SetApp(app, f.designated(app.UUIDandVersion.UUID, apps))
	}
	return document, nil
}

// designated is the member that says of an application that it is its
// designated node.
func (f *Fleet) designated(app uuid.UUID, apps [][]types.AppInstanceConfig) uuid.UUID {
	for i, of := range apps {
		for _, a := range of {
			if a.UUIDandVersion.UUID == app && a.IsDesignatedNodeID {
				return f.IDs()[i]
			}
		}
	}
	return uuid.Nil
}
