package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/spf13/cobra"

	"github.com/babelpool/babelpool/publisher"
)

func (a *app) publishCommand() *cobra.Command {
	var data, id, traceID string
	var delay time.Duration
	var headers map[string]string
	cmd := &cobra.Command{
		Use: "publish queue urn", Short: "Publish one message",
		Long:    "Publish one message. Its data is one JSON object, from --data or, with --data -, from standard input.",
		Example: `  babelpool publish orders urn:babel:orders:created --data '{"order_id":1042}'`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 2 {
				return usageError{errors.New("name a queue and a URN")}
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if data == "-" {
				text, err := io.ReadAll(a.in)
				if err != nil {
					return err
				}
				data = strings.TrimSpace(string(text))
			}
			if !json.Valid([]byte(data)) {
				return usageError{errors.New("--data: is no JSON")}
			}
			if len(headers) > 0 && delay > 0 {
				return usageError{errors.New("--header: a delayed message has none (F4)")}
			}
			return a.flags.with(func(client redis.UniversalClient) error {
				p, err := publisher.New(publisher.Config{Client: client, Queue: args[0], Layout: a.flags.layout, KeyPrefix: a.flags.prefix})
				if err != nil {
					return usageError{err}
				}
				options := []publisher.Option{publisher.WithID(id), publisher.WithTraceID(traceID)}
				var stored string
				switch {
				case delay > 0:
					stored, err = p.PublishDelayed(cmd.Context(), delay, args[1], json.RawMessage(data), options...)
				case len(headers) > 0:
					stored, err = p.PublishWithHeaders(cmd.Context(), headers, args[1], json.RawMessage(data), options...)
				default:
					stored, err = p.Publish(cmd.Context(), args[1], json.RawMessage(data), options...)
				}
				if errors.Is(err, publisher.ErrEncode) || errors.Is(err, publisher.ErrNoDelay) {
					return usageError{err}
				}
				if err != nil {
					return fmt.Errorf("id %q: %w", stored, err)
				}
				if a.flags.json {
					return writeJSON(a.out, map[string]string{"id": stored})
				}
				say(a.out, "%s\n", shown(stored, 200))
				return nil
			})
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&data, "data", "{}", "the message's data, one JSON object; - reads it from standard input")
	flags.StringVar(&id, "id", "", "meta.id (default: a new UUID)")
	flags.StringVar(&traceID, "trace-id", "", "trace_id (default: a new UUID)")
	flags.DurationVar(&delay, "delay", 0, "ready after this time (zset layout)")
	flags.StringToStringVar(&headers, "header", nil, "name=value (legacy layout); may be given several times")
	return cmd
}
