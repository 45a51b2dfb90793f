package main

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/oauth"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"
)

const (
	none           = "-"
	securedRecords = 100
)

// secured connects with credentials, right and wrong, as the lines of standard input say.
func (p *program) secured() error {
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		fields := strings.Split(lines.Text(), "\t")
		if len(fields) != 9 {
			return fmt.Errorf("not a line of nine fields: %s", lines.Text())
		}
		found, err := p.connect(fields[1], fields[3:])
		if err != nil {
			found = refusal(err)
		}
		p.check(fields[0], found == fields[2], found)
	}
	return lines.Err()
}

// connect writes and reads records of a new topic.
func (p *program) connect(topic string, connection []string) (string, error) {
	secured := &program{ctx: p.ctx, bootstrap: connection[0], topic: topic}
	var err error
	if secured.security, err = security(connection[1:]); err != nil {
		return "", err
	}
	client, err := secured.client()
	if err != nil {
		return "", err
	}
	defer client.Close()
	if err = client.Ping(p.ctx); err != nil {
		return "", err
	}
	secured.admin = kadm.NewClient(client)
	if err = secured.createTopic(1); err != nil {
		return "", err
	}
	var records []*kgo.Record
	for i := range securedRecords {
		records = append(records, &kgo.Record{Value: fmt.Appendf(nil, "value-%d", i)})
	}
	if err = secured.produce(records); err != nil {
		return "", err
	}
	read, err := secured.readFromStart(securedRecords)
	if err != nil || len(read) != securedRecords {
		return fmt.Sprintf("read %d of %d records", len(read), securedRecords), err
	}
	return "served", nil
}

func security(fields []string) ([]kgo.Opt, error) {
	authority, identity, mechanism, user, secret := fields[0], fields[1], fields[2], fields[3], fields[4]
	var options []kgo.Opt
	if authority != none {
		pem, err := os.ReadFile(authority)
		if err != nil {
			return nil, err
		}
		settings := &tls.Config{RootCAs: x509.NewCertPool()}
		settings.RootCAs.AppendCertsFromPEM(pem)
		if identity != none {
			certificate, err := tls.LoadX509KeyPair(identity, identity)
			if err != nil {
				return nil, err
			}
			settings.Certificates = []tls.Certificate{certificate}
		}
		options = append(options, kgo.DialTLSConfig(settings))
	}
	var login sasl.Mechanism
	switch mechanism {
	case none:
		return options, nil
	case "PLAIN":
		login = plain.Auth{User: user, Pass: secret}.AsMechanism()
	case "SCRAM-SHA-256":
		login = scram.Auth{User: user, Pass: secret}.AsSha256Mechanism()
	case "SCRAM-SHA-512":
		login = scram.Auth{User: user, Pass: secret}.AsSha512Mechanism()
	case "OAUTHBEARER":
		login = oauth.Auth{Token: secret}.AsMechanism()
	default:
		return nil, fmt.Errorf("unknown mechanism %s", mechanism)
	}
	return append(options, kgo.SASL(login)), nil
}

func refusal(err error) string {
	var untrusted *tls.CertificateVerificationError
	var alert tls.AlertError
	switch {
	case errors.Is(err, kerr.SaslAuthenticationFailed):
		return "unauthenticated"
	// A server says first why it refuses a token (RFC 7628, 3.2.2), and franz-go ends there.
	case strings.Contains(err.Error(), "unexpected data in oauth response"):
		return "unauthenticated"
	case errors.As(err, &untrusted) || errors.As(err, &alert) || strings.Contains(err.Error(), "remote error: tls:"):
		return "untrusted"
	default:
		return err.Error()
	}
}
