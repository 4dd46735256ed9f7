// Package dashboards makes the dashboards for Grafana in docs/dashboards, of metrics of the agents
// (docs/wire.md, "Metrics") and of the recorded ones in docs/alerts.yaml:
//
//	go test ./test/dashboards -update
package dashboards

import (
	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/common"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/prometheus"
	"github.com/grafana/grafana-foundation-sdk/go/stat"
	"github.com/grafana/grafana-foundation-sdk/go/table"
	"github.com/grafana/grafana-foundation-sdk/go/timeseries"
)

// All are the dashboards by the names of their files.
func All() map[string]*dashboard.DashboardBuilder {
	return map[string]*dashboard.DashboardBuilder{"fleet": fleet(), "cluster": cluster(), "node": node()}
}

// fleet shows all agents that one Prometheus scrapes: which are down, and what is wrong where.
func fleet() *dashboard.DashboardBuilder {
	return titled("fleet", "zedkube: fleet").
		WithRow(dashboard.NewRowBuilder("Now")).
		WithPanel(number("Agents that answer", `sum(up{job="zedkube"})`, "")).
		WithPanel(alarming(number("Agents that do not answer", `count(up{job="zedkube"} == 0) or vector(0)`, ""))).
		WithPanel(alarming(number("Nodes with serious problems", `count(sum by (job, instance) (zedkube:problem:once{severity="bad"})) or vector(0)`, ""))).
		WithPanel(alarming(number("Nodes not ready", `sum(zedkube:nodes:sum{state="not_ready"})`, ""))).
		WithPanel(alarming(number("Applications not running", `sum(zedkube:apps:sum{state="not_running"})`, ""))).
		WithPanel(alarming(number("Volumes at their last replica or faulted", `sum(zedkube:volumes:sum{state=~"last_replica|faulted"})`, ""))).
		WithRow(dashboard.NewRowBuilder("Where")).
		WithPanel(list("Problems by node", `sort_desc(sum by (instance, name, severity) (zedkube_problem))`)).
		WithPanel(list("Drains under way", `max by (instance, phase) (zedkube_drain_phase{phase!="Idle"} == 1)`)).
		WithPanel(list("Versions of zedkube", `count by (version) (zedkube_build_info)`)).
		WithPanel(list("Versions of Kubernetes", `count by (kubernetes) (zedkube_cluster_info)`)).
		WithRow(dashboard.NewRowBuilder("Over time")).
		WithPanel(graph("Problems", "short", line(`sum by (severity) (zedkube:problems:sum)`, "{{severity}}"))).
		WithPanel(graph("Agents that do not answer", "short", line(`count(up{job="zedkube"} == 0) or vector(0)`, "agents"))).
		WithPanel(graph("Shortest time to the end of a certificate", "s", line(`min by (certificate) (zedkube_certificate_left_seconds)`, "{{certificate}}"))).
		WithPanel(graph("Restarts of agents in an hour", "short", line(`sum(changes(process_start_time_seconds{job="zedkube"}[1h]))`, "restarts")))
}

// cluster shows the nodes of one cluster, which are chosen by their names.
func cluster() *dashboard.DashboardBuilder {
	return titled("cluster", "zedkube: cluster").WithVariable(instances(true)).
		WithRow(dashboard.NewRowBuilder("What it consists of, by the node that reports")).
		WithPanel(graph("Nodes", "short", line(`sum by (state) (zedkube_nodes{instance=~"$instance"})`, "{{state}}"))).
		WithPanel(graph("Applications", "short", line(`sum by (state) (zedkube_apps{instance=~"$instance"})`, "{{state}}"))).
		WithPanel(graph("Volumes", "short", line(`sum by (state) (zedkube_volumes{instance=~"$instance"})`, "{{state}}"))).
		WithPanel(list("Who reports", `max by (instance) (zedkube_lease_held{instance=~"$instance"} == 1)`)).
		WithRow(dashboard.NewRowBuilder("Its nodes")).
		WithPanel(list("Problems", `sum by (instance, name, severity) (zedkube_problem{instance=~"$instance"})`).Span(8)).
		WithPanel(graph("Ready", "short", line(`zedkube_node_ready{instance=~"$instance"}`, "{{instance}}"))).
		WithPanel(graph("Cordoned", "short", line(`sum by (instance, by) (zedkube_node_cordoned{instance=~"$instance"} == 1)`, "{{instance}} by {{by}}"))).
		WithPanel(graph("Phase of the drain", "short", line(`zedkube_drain_phase{instance=~"$instance"} == 1`, "{{instance}} {{phase}}"))).
		WithPanel(graph("Phase of a change of k3s", "short", line(`zedkube_k3s_lifecycle_phase{instance=~"$instance"} == 1`, "{{instance}} {{phase}}"))).
		WithPanel(graph("Phase of the cluster as each node sees it", "short", line(`zedkube_cluster_phase{instance=~"$instance"} == 1`, "{{instance}} {{phase}}"))).
		WithPanel(graph("API server answers", "short", line(`zedkube_api_up{instance=~"$instance"}`, "{{instance}}"))).
		WithPanel(graph("Age of the report", "s", line(`zedkube_report_stale_seconds{instance=~"$instance"}`, "{{instance}}"))).
		WithPanel(graph("Requests to the API server", "reqps", line(`zedkube:api_requests:rate5m{instance=~"$instance"}`, "{{instance}}"))).
		WithPanel(graph("Time until certificates expire", "s", line(`min by (instance) (zedkube_certificate_left_seconds{instance=~"$instance"})`, "{{instance}}")))
}

// node shows one agent and what it does.
func node() *dashboard.DashboardBuilder {
	return titled("node", "zedkube: node").WithVariable(instances(false)).
		WithRow(dashboard.NewRowBuilder("Now")).
		WithPanel(number("Ready", `zedkube_node_ready{instance="$instance"}`, "")).
		WithPanel(alarming(number("Problems", `sum(zedkube_problems{instance="$instance"})`, ""))).
		WithPanel(number("Pods that the drain has yet to remove", `zedkube_drain_pods_left{instance="$instance"}`, "")).
		WithPanel(number("Time since the drain was requested", `zedkube_drain_seconds{instance="$instance"}`, "s")).
		WithRow(dashboard.NewRowBuilder("What is wrong")).
		WithPanel(list("Conditions that are false", `max by (condition) (zedkube_condition{instance="$instance",status="false"} == 1)`)).
		WithPanel(list("Problems by name", `sum by (name, severity) (zedkube_problem{instance="$instance"})`)).
		WithRow(dashboard.NewRowBuilder("Its drain")).
		WithPanel(graph("What blocks the drain", "short",
			line(`zedkube_drain_blockers{instance="$instance"}`, "pods, {{outlook}}"), line(`zedkube_drain_volumes{instance="$instance"}`, "volumes, {{outlook}}"))).
		WithPanel(graph("Operations", "ops", line(`sum by (op, outcome) (rate(zedkube_operations_total{instance="$instance"}[$__rate_interval]))`, "{{op}} {{outcome}}"))).
		WithRow(dashboard.NewRowBuilder("The agent itself")).
		WithPanel(graph("Processor", "percentunit", line(`rate(process_cpu_seconds_total{job="zedkube",instance="$instance"}[$__rate_interval])`, "cpu"))).
		WithPanel(graph("Memory", "bytes", line(`process_resident_memory_bytes{job="zedkube",instance="$instance"}`, "resident"), line(`go_memstats_heap_inuse_bytes{job="zedkube",instance="$instance"}`, "heap in use"))).
		WithPanel(graph("Requests to the API server by status", "reqps", line(`sum by (code) (rate(zedkube_api_requests_total{instance="$instance"}[$__rate_interval]))`, "{{code}}"))).
		WithPanel(graph("Failed steps of components", "short", line(`sum by (component) (increase(zedkube_component_step_errors_total{instance="$instance"}[$__rate_interval])) > 0`, "{{component}}"))).
		WithPanel(graph("Messages refused or dropped", "short",
			line(`sum by (topic) (increase(zedkube_pubsub_refused_total{instance="$instance"}[$__rate_interval]))`, "{{topic}} refused"),
			line(`sum by (topic) (increase(zedkube_pubsub_dropped_total{instance="$instance"}[$__rate_interval]))`, "{{topic}} dropped")))
}

func titled(uid, title string) *dashboard.DashboardBuilder {
	return dashboard.NewDashboardBuilder(title).Uid("zedkube-"+uid).Tags([]string{"zedkube"}).Refresh("1m").Time("now-6h", "now").
		Timezone("browser").Tooltip(dashboard.DashboardCursorSyncCrosshair).Readonly().
		WithVariable(dashboard.NewDatasourceVariableBuilder("datasource").Label("Prometheus").Type("prometheus")).
		Link(dashboard.NewDashboardLinkBuilder("zedkube").Type(dashboard.DashboardLinkTypeDashboards).Tags([]string{"zedkube"}).KeepTime(true))
}

func source() common.DataSourceRef {
	return common.DataSourceRef{Type: cog.ToPtr("prometheus"), Uid: cog.ToPtr("${datasource}")}
}

// instances chooses among the agents that Prometheus knows: one, or several.
func instances(several bool) *dashboard.QueryVariableBuilder {
	v := dashboard.NewQueryVariableBuilder("instance").Label("Node").Datasource(source()).Refresh(dashboard.VariableRefreshOnTimeRangeChanged).
		Sort(dashboard.VariableSortAlphabeticalAsc).Query(dashboard.StringOrMap{String: cog.ToPtr(`label_values(up{job="zedkube"}, instance)`)})
	if several {
		v = v.Multi(true).IncludeAll(true).AllValue(".+") // not a list of 1,000 names
	}
	return v
}

func line(expr, legend string) *prometheus.DataqueryBuilder {
	return prometheus.NewDataqueryBuilder().Expr(expr).LegendFormat(legend).Datasource(source()).Range()
}

func graph(title, unit string, lines ...*prometheus.DataqueryBuilder) *timeseries.PanelBuilder {
	p := timeseries.NewPanelBuilder().Title(title).Datasource(source()).Unit(unit).Min(0).Span(8).Height(7)
	if unit == "s" {
		p = timeseries.NewPanelBuilder().Title(title).Datasource(source()).Unit(unit).Span(8).Height(7)
	}
	p = p.Legend(common.NewVizLegendOptionsBuilder().ShowLegend(true).DisplayMode(common.LegendDisplayModeList).Placement(common.LegendPlacementBottom)).
		Tooltip(common.NewVizTooltipOptionsBuilder().Mode(common.TooltipDisplayModeMulti).Sort(common.SortOrderDescending))
	for i, l := range lines {
		p = p.WithTarget(l.RefId(string(rune('A' + i))))
	}
	return p
}

func number(title, expr, unit string) *stat.PanelBuilder {
	return stat.NewPanelBuilder().Title(title).Datasource(source()).Unit(unit).NoValue("no data").Span(4).Height(4).GraphMode(common.BigValueGraphModeNone).
		WithTarget(prometheus.NewDataqueryBuilder().Expr(expr).Datasource(source()).RefId("A").Instant())
}

// alarming shows every number but 0 in red.
func alarming(p *stat.PanelBuilder) *stat.PanelBuilder {
	return p.ColorMode(common.BigValueColorModeBackground).Thresholds(dashboard.NewThresholdsConfigBuilder().Mode(dashboard.ThresholdsModeAbsolute).
		Steps([]dashboard.Threshold{{Color: "green"}, {Color: "red", Value: cog.ToPtr(1.0)}}))
}

func list(title, expr string) *table.PanelBuilder {
	return table.NewPanelBuilder().Title(title).Datasource(source()).Span(12).Height(8).Footer(common.NewTableFooterOptionsBuilder().Reducer([]string{})).
		WithTarget(prometheus.NewDataqueryBuilder().Expr(expr).Datasource(source()).RefId("A").Instant().Format(prometheus.PromQueryFormatTable))
}
