package faultproxy

import "errors"

// errProtocol is returned when a peer sends what is not RESP; the connection is then closed.
var errProtocol = errors.New("faultproxy: not RESP")
