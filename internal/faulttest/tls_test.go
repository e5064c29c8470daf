package faulttest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/babelpool/babelpool/internal/redisproc"
	"github.com/babelpool/babelpool/pool"
)

// certificates are files for a server on 127.0.0.1, and the pool of authorities that trusts it.
func certificates(t *testing.T) (certFile, keyFile string, trusted *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	must(t, err)
	secret, err := x509.MarshalECPrivateKey(key)
	must(t, err)
	write := func(name, kind string, bytes []byte) string {
		file := filepath.Join(t.TempDir(), name)
		must(t, os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: bytes}), 0o600))
		return file
	}
	cert, err := x509.ParseCertificate(raw)
	must(t, err)
	trusted = x509.NewCertPool()
	trusted.AddCert(cert)
	return write("cert.pem", "CERTIFICATE", raw), write("key.pem", "EC PRIVATE KEY", secret), trusted
}

// TestTLS runs pools over rediss://, and one that does not trust the server.
func TestTLS(t *testing.T) {
	t.Parallel()
	certFile, keyFile, trusted := certificates(t)
	free, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	must(t, err)
	port := free.Addr().(*net.TCPAddr).Port
	must(t, free.Close())
	tlsArgs := []string{
		"--tls-port", strconv.Itoa(port), "--tls-cert-file", certFile, "--tls-key-file", keyFile,
		"--tls-ca-cert-file", certFile, "--tls-auth-clients", "no",
	}
	url := "rediss://127.0.0.1:" + strconv.Itoa(port)
	for _, layout := range layouts {
		r := newRig(t, layout, redisproc.Config{Args: tlsArgs})
		untrusting, err := pool.OpenRedis(url)
		must(t, err)
		t.Cleanup(func() { _ = untrusting.Close() })
		options := *untrusting.Options()
		options.Dialer = nil // it holds the old configuration
		options.TLSConfig = &tls.Config{RootCAs: trusted, MinVersion: tls.VersionTLS12}
		trusting := redis.NewClient(&options)
		t.Cleanup(func() { _ = trusting.Close() })

		r.publish(100)
		p := r.start(pool.Config{Client: trusting})
		r.awaitAllDone()
		r.awaitEmpty()
		p.stopClean()

		// A server that cannot be trusted ends Run.
		p = r.start(pool.Config{Client: untrusting})
		await(t, p.ended, patience, "the pool's end")
		if !errors.Is(p.err, pool.ErrRefused) || !strings.Contains(p.err.Error(), "unknown authority") {
			t.Errorf("an unknown authority gives %v", p.err)
		}
		must(t, r.server.Stop())
	}
}
