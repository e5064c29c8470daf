package redrive

import "errors"

var (
	// ErrConfig is returned by Open when the config cannot work. It names the field.
	ErrConfig = errors.New("redrive: config")

	// ErrOptions is returned by Redrive when the options contradict each other, the layout or the queue's name. Nothing
	// was changed.
	ErrOptions = errors.New("redrive: options")

	// ErrFile is returned by Import when a file is no export, or is cut off. What was read before is imported.
	ErrFile = errors.New("redrive: not a whole export")
)
