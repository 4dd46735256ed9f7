package zedagent

import (
	"bytes"

	"github.com/lf-edge/eve-api/go/info"
	"github.com/lf-edge/eve-api/go/metrics"
	"github.com/lf-edge/eve/pkg/pillar/types"
	"google.golang.org/protobuf/proto"
)

func createVolumeInstanceMetrics(*zedagentContext, *metrics.ZMetricMsg) {}
func createProcessMetrics(*zedagentContext, *metrics.ZMetricMsg)        {}

func publishMetrics(ctx *zedagentContext) {
	ReportMetrics := &metrics.ZMetricMsg{DevID: devUUID.String()}
	createVolumeInstanceMetrics(ctx, ReportMetrics)
	createProcessMetrics(ctx, ReportMetrics)
	sendMetricsProtobuf(ReportMetrics)
}

func PublishAppInfoToZedCloud(ctx *zedagentContext, uuid string, aiStatus *types.AppInstanceStatus, dest destinationBitset) {
	ReportAppInfo := &info.ZInfoApp{AppID: uuid}
	if aiStatus != nil {
		if aiStatus.NoUploadStatsToController {
			log.Tracef("PublishAppInfoToZedCloud: domainName %s, not upload info, NoUploadStatsToController set", aiStatus.DomainName)
			return
		}
		ReportAppInfo.AppVersion = aiStatus.UUIDandVersion.Version
		ReportAppInfo.AppName = aiStatus.DisplayName
		ReportAppInfo.State = aiStatus.State.ZSwState()
		ReportAppInfo.ClusterAppRunning = aiStatus.Activated
	}
	data, err := proto.Marshal(&info.ZInfoMsg{
		Ztype: info.ZInfoTypes_ZiApp, DevId: devUUID.String(), InfoContent: &info.ZInfoMsg_Ainfo{Ainfo: ReportAppInfo},
	})
	if err != nil {
		panic(err)
	}
	queueInfoToDest(ctx, dest, uuid, bytes.NewBuffer(data), true, false, false, info.ZInfoTypes_ZiApp)
}
