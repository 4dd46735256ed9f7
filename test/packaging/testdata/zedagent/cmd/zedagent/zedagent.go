// Package zedagent stands in for EVE's: what the patch calls, and what calls the patch, in the
// order in which EVE does it.
package zedagent

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"time"

	"github.com/lf-edge/eve-api/go/info"
	"github.com/lf-edge/eve-api/go/metrics"
	"github.com/lf-edge/eve/pkg/pillar/pubsub"
	"github.com/lf-edge/eve/pkg/pillar/types"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
)

const (
	agentName   = "zedagent"
	errorTime   = 3 * time.Minute
	warningTime = 40 * time.Second
)

type destinationBitset uint

const AllDest destinationBitset = 7

type infoForObjectKey struct {
	infoType  info.ZInfoTypes
	objectKey string
	infoDest  destinationBitset
}

type publication map[string]interface{}

func (p publication) GetAll() map[string]interface{} { return p }

type activated struct{}

func (activated) Activate() {}

type zedagentContext struct {
	ps                       *pubsub.PubSub
	subKubeClusterInfo       activated
	pubEdgeNodeClusterConfig publication
	triggerObjectInfo        chan infoForObjectKey
}

type logger struct{}

func (logger) Errorf(format string, args ...interface{}) { panic(fmt.Sprintf(format, args...)) }
func (logger) Tracef(string, ...interface{})             {}

var (
	log     logger
	devUUID = types.UUID("c4a1d7e2-90b3-4d58-8a6e-1be0f7723c05")
)

// queueInfoToDest prints what would be queued.
func queueInfoToDest(_ *zedagentContext, dest destinationBitset, key string, buf *bytes.Buffer, bailOnHTTPErr,
	withNetTracing, forcePeriodic bool, itemType interface{}) {
	var m info.ZInfoMsg
	if err := proto.Unmarshal(buf.Bytes(), &m); err != nil || itemType != m.Ztype || dest != AllDest || !bailOnHTTPErr || withNetTracing || forcePeriodic {
		panic(fmt.Sprintln(err, itemType, dest))
	}
	printed(key, &m)
}

func printed(key string, m proto.Message) {
	raw, err := protojson.Marshal(m)
	if err != nil {
		panic(err)
	}
	if err := json.NewEncoder(os.Stdout).Encode(map[string]interface{}{"key": key, "message": json.RawMessage(raw)}); err != nil {
		panic(err)
	}
}

func sendMetricsProtobuf(m *metrics.ZMetricMsg) { printed("metrics", m) }

// Step is one thing that happens: a topic of an agent, an application's status of zedmanager, or
// the time for metrics.
type Step struct {
	Topic, Key string
	Value      json.RawMessage
	App        *types.AppInstanceStatus
	Metrics    bool
}

// Drive does the steps one after the other.
func Drive(steps []Step) {
	ctx := &zedagentContext{
		ps: &pubsub.PubSub{Subs: map[string]*pubsub.Sub{}}, triggerObjectInfo: make(chan infoForObjectKey),
		pubEdgeNodeClusterConfig: publication{"global": types.EdgeNodeClusterConfig{ClusterID: types.UUIDandVersion{UUID: "5d0c7a52-3a0e-4c7e-9f1b-2f6f0c3a9e11"}}},
	}
	apps := map[string]types.AppInstanceStatus{}
	publishMetrics(ctx) // as early as the first can come
	initKubeSubs(ctx)
	for _, s := range steps {
		switch {
		case s.App != nil:
			apps[s.App.Key()] = *s.App
			PublishAppInfoToZedCloud(ctx, s.App.Key(), s.App, AllDest)
		case s.Metrics:
			publishMetrics(ctx)
		default:
			sub := ctx.ps.Subs[s.Topic]
			if sub == nil {
				panic("nobody subscribes to " + s.Topic)
			}
			if err := sub.Deliver(s.Key, s.Value); err != nil {
				panic(err)
			}
			for waits := true; waits; {
				select {
				case <-sub.Done:
					waits = false
				case o := <-ctx.triggerObjectInfo:
					if app, ok := apps[o.objectKey]; ok && o.infoType == info.ZInfoTypes_ZiApp {
						PublishAppInfoToZedCloud(ctx, app.Key(), &app, o.infoDest)
					}
				}
			}
		}
	}
}
