package drain

import (
	"context"

	"github.com/sirupsen/logrus"

	"github.com/zedkube/zedkube/pkg/base/filewatch"
)

// watchFiles rings when something happens to one of the files, until ctx is done. Where
// nothing can be watched that is reported: the drain's period has to do then.
func watchFiles(ctx context.Context, log logrus.FieldLogger, ring func(), files ...string) {
	watch, err := filewatch.New()
	if err != nil {
		log.WithError(err).Warn("cannot watch for the NodeDrainStatus force file, it will be seen late")
		return
	}
	if err := watch.Run(ctx, ring, files...); err != nil {
		log.WithError(err).Warn("the watch for the NodeDrainStatus force file has ended, it will be seen late")
	}
}
