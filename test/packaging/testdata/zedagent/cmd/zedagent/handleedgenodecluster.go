package zedagent

func initKubeSubs(ctx *zedagentContext) {
	ctx.subKubeClusterInfo.Activate()
}
