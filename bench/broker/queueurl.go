package broker

import "net/url"

// QueueURL returns the URL of a queue on this broker, for package backends:
// scheme is the backend's, query its parameters, possibly none.
func (b *Broker) QueueURL(scheme, queueName, query string) string {
	u, err := url.Parse(b.url)
	if err != nil { // External has parsed it, and ours are well-formed
		return b.url
	}
	u.Scheme = scheme
	params, err := url.ParseQuery(query)
	if err != nil {
		// Left as it is, so that the backend's own check names the fault.
		u.RawQuery = query
		return u.String()
	}
	for name, values := range u.Query() {
		if !params.Has(name) {
			params[name] = values
		}
	}
	if scheme == "kafka" {
		u.Path = "/" + queueName
	} else {
		params.Set("queue", queueName)
	}
	u.RawQuery = params.Encode()
	return u.String()
}
