package broker

func (n *native) proxied() proxied { return n.plan.proxied }
