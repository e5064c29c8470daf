package securitytest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// authority signs certificates.
type authority struct {
	key  *ecdsa.PrivateKey
	cert *x509.Certificate
}

// trusted is the authority that this process trusts by SSL_CERT_FILE.
var trusted *authority

// trustOwnAuthority makes it, and lets the standard library read it as the machine's only one. The file may go then:
// it is read once.
func trustOwnAuthority() error {
	var err error
	if trusted, err = newAuthority("trusted"); err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "securitytest")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	file := filepath.Join(dir, "authority.pem")
	if err = writePEM(file, "CERTIFICATE", trusted.cert.Raw); err != nil {
		return err
	}
	for name, value := range map[string]string{"SSL_CERT_FILE": file, "SSL_CERT_DIR": dir} {
		if err = os.Setenv(name, value); err != nil {
			return err
		}
	}
	_, err = x509.SystemCertPool()
	return err
}

func newAuthority(name string) (*authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), KeyUsage: x509.KeyUsageCertSign,
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return nil, err
	}
	cert, err := x509.ParseCertificate(raw)
	return &authority{key, cert}, err
}

// pair are the files of a certificate and its key.
type pair struct{ cert, key, authority string }

// sign makes a certificate for an address that is valid until then.
func (a *authority) sign(t *testing.T, ip net.IP, until time.Time) pair {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "redis"}, IPAddresses: []net.IP{ip},
		NotBefore: time.Now().Add(-2 * time.Hour), NotAfter: until, KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, a.cert, &key.PublicKey, a.key)
	must(t, err)
	secret, err := x509.MarshalECPrivateKey(key)
	must(t, err)
	dir := t.TempDir()
	p := pair{filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem"), filepath.Join(dir, "authority.pem")}
	must(t, writePEM(p.cert, "CERTIFICATE", raw))
	must(t, writePEM(p.key, "EC PRIVATE KEY", secret))
	must(t, writePEM(p.authority, "CERTIFICATE", a.cert.Raw))
	return p
}

func writePEM(file, kind string, bytes []byte) error {
	return os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: bytes}), 0o600)
}
