function element = BusElement()
element = struct('Name', '', 'Dimensions', 1, 'DataType', 'double', 'Description', '');
end
