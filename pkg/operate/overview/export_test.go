package overview

// The bounds that the tests exceed.
const (
	MaxFile    = maxFile
	MaxObjects = maxObjects
	MaxKeys    = maxKeys
)
