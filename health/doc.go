// Package health answers the probes of Kubernetes, a load balancer or systemd by HTTP: is the process alive, and is it
// ready. It asks pools and sends nothing to Redis, so a probe may come as often as it likes.
//
//	http.ListenAndServe(":8081", health.Handler(p))
//
// /livez fails when only a new process helps: a loop of the pool hangs, or Run has returned. /readyz fails as well before
// Run consumes, while the pool drains, and while Redis is away beyond pool.Config.ReadinessLimit. The answer is JSON and
// names the reasons. Queue names are in it: keep it on a port that is not public.
package health
