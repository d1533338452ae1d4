/order[item]
