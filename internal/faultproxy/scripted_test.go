package faultproxy

import (
	"bufio"
	"errors"
	"io"
	"net"
	"testing"
	"time"
)

// scriptedServer answers the commands of its one connection with these texts, in order.
func scriptedServer(t *testing.T, replies []string) (addr string) {
	t.Helper()
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		defer conn.Close() //nolint:errcheck // nothing is lost by it
		r := bufio.NewReader(conn)
		for _, reply := range replies {
			if _, _, err := readCommand(r); err != nil {
				t.Errorf("scripted server: %v", err)
				return
			}
			if _, err := io.WriteString(conn, reply); err != nil {
				t.Errorf("scripted server: %v", err)
				return
			}
		}
		_, _ = io.Copy(io.Discard, conn) // until the proxy hangs up
	}()
	t.Cleanup(func() {
		_ = listener.Close()
		<-ended
	})
	return listener.Addr().String()
}

func dial(t *testing.T, addr string) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp4", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	return conn
}

func readN(t *testing.T, r io.Reader, n int) string {
	t.Helper()
	buf := make([]byte, n)
	if _, err := io.ReadFull(r, buf); err != nil {
		t.Fatal(err)
	}
	return string(buf)
}

func readAll(t *testing.T, r io.Reader) string {
	t.Helper()
	rest, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(rest)
}

func isTimeout(err error) bool {
	var timeout net.Error
	return errors.As(err, &timeout) && timeout.Timeout()
}
